//! `baton ctl`: speaks to a running server.

use std::path::PathBuf;
use std::process::ExitCode;

use baton_master::control::{self, Command, PurgeRequest, RouteQuestion};
use baton_report::counted;
use clap::{Args, Subcommand, ValueHint};
use serde_json::Value;

use super::command_line::parse_header;
use super::ctl_cluster::Cluster;
use super::output::{Failure, print};
use super::status::Topic;
use super::{ctl_cache, ctl_drain, documents_status, status, status_summary};

/// Ask a running server for its status, or to reload, drain, stop, replace its workers, reopen its logs, show or purge its
/// shared cache, make way for its successor, spare an origin or show its cluster
#[derive(Debug, Args)]
pub(super) struct Ctl {
    #[command(subcommand)]
    request: Request,

    /// Control socket [default: that of the only server that this user runs]
    #[arg(long, global = true, value_name = "PATH", value_hint = ValueHint::FilePath, env = "BATON_CONTROL")]
    control: Option<PathBuf>,

    /// Print the server's answer as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
enum Request {
    /// How the server is, on one screen; by topic or with `--all`, everything
    Status {
        /// Only this, in full
        #[arg(value_enum)]
        topic: Option<Topic>,

        /// Everything
        #[arg(long, conflicts_with = "topic")]
        all: bool,
    },
    /// Read the configuration again; connections stay open
    Reload,
    /// Accept nothing new, finish what is under way, end
    Drain,
    /// Start new worker processes in the place of the old ones; idle clients move to them on their connections
    Recycle,
    /// End at once
    Stop,
    /// Open the log files again, after they were renamed
    ReopenLogs,
    /// Start the executable that is there by now, let it take over, and drain, without refusing a client
    Upgrade,
    /// Send no new requests to an origin, on any route; what is under way ends in its own time
    DrainOrigin {
        /// Its URL as in the configuration, such as http://10.0.0.1:3000; a path does not matter
        #[arg(value_name = "URL")]
        url: String,
    },
    /// Send requests to an origin again
    UndrainOrigin {
        /// Its URL as in the configuration
        #[arg(value_name = "URL")]
        url: String,
    },
    /// Which documents are at other servers, and how busy these are; of one document, where it is and why
    Documents {
        /// Path of a document, as clients ask for it: /img/tower.jpg
        #[arg(value_name = "PATH")]
        path: Option<String>,
    },
    Cluster(Cluster),
    /// Which segments of the responses for a URL are in the shared cache of a worker
    Cache {
        /// The URL as clients ask for it
        #[arg(value_name = "URL")]
        url: String,
        /// Field of the request, if its route tells responses apart by it; may be repeated
        #[arg(short = 'H', long, value_name = "NAME:VALUE", value_parser = parse_header)]
        header: Vec<(String, String)>,
    },
    Purge(Purge),
}

/// Drop responses from the shared cache, in all workers
///
/// Returns when each worker has done it: no later request is answered with what was purged. Responses that are being fetched
/// meanwhile are purged, too.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(after_help = PURGE_EXAMPLES)]
#[group(id = "purged", required = true, multiple = true)]
struct Purge {
    /// URLs as clients ask for them, each with all its variants; the query counts as the route says
    #[arg(value_name = "URL", group = "purged")]
    urls: Vec<String>,

    /// All URLs below this one, which ends with a slash: https://HOST/PATH/
    #[arg(long, value_name = "URL", group = "purged")]
    prefix: Vec<String>,

    /// All responses with this word in `Cache-Tag` or `Surrogate-Key`, or in the fields that the route names
    #[arg(long, value_name = "TAG", group = "purged")]
    tag: Vec<String>,

    /// Everything
    #[arg(long, group = "purged")]
    all: bool,
}

const PURGE_EXAMPLES: &str = "Examples:
  baton ctl purge https://example.org/news/ https://example.org/feed.xml
  baton ctl purge --prefix https://example.org/shop/
  baton ctl purge --tag product-17 --tag product-18
  baton ctl purge --all
";

impl Ctl {
    /// Asks, and prints the answer.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let path = self.control.clone().map_or_else(control::find, Ok)?;
        let command = match &self.request {
            Request::Status { .. } | Request::Documents { path: None } => Command::Status,
            Request::Documents { path: Some(path) } => Command::Document(path.clone()),
            Request::Reload => Command::Reload,
            Request::Drain => Command::Drain,
            Request::Recycle => Command::Recycle,
            Request::Stop => Command::Stop,
            Request::ReopenLogs => Command::ReopenLogs,
            Request::Upgrade => Command::Upgrade,
            Request::DrainOrigin { url } => Command::DrainOrigin(url.clone()),
            Request::UndrainOrigin { url } => Command::UndrainOrigin(url.clone()),
            Request::Cluster(cluster) => cluster.command(),
            Request::Cache { url, header } => {
                let (url, fields) = (url.clone(), header.clone());
                Command::Cache(RouteQuestion { url, fields, ..RouteQuestion::default() })
            }
            Request::Purge(Purge { urls, prefix, tag, all }) => Command::Purge(PurgeRequest {
                urls: urls.clone(),
                prefixes: prefix.clone(),
                tags: tag.clone(),
                all: *all,
            }),
        };
        let answer = control::request(&path, command)?;
        let told: Value = serde_json::from_str(&answer)?;
        if self.json {
            return print(&match &self.request {
                Request::Cluster(cluster) => format!("{}\n", cluster.part(&told)),
                Request::Documents { path: None } => format!("{}\n", told["documents"]),
                _ => format!("{answer}\n"),
            });
        }
        let printed = print(&match &self.request {
            Request::Status { topic: Some(topic), .. } => status::of_topic(&told, *topic),
            Request::Status { all: true, .. } => status::for_humans(&told),
            Request::Status { .. } => status_summary::summary(&told),
            Request::Documents { path: None } => documents_status::for_humans(&told["documents"]),
            Request::Documents { path: Some(path) } => documents_status::of_document(path, &told["told"]),
            Request::Reload => reloaded(&told),
            Request::Drain => format!(
                "draining: what is under way may take {} ms, tunnels {} ms\n",
                told["limit_ms"], told["tunnels_ms"]
            ),
            Request::Recycle => format!("workers that are replaced: {}\n", told["replaced"]),
            Request::Stop => "stopping\n".into(),
            Request::ReopenLogs => "the logs are open again, by their names\n".into(),
            Request::Upgrade => format!("process {} has taken over\n", told["pid"]),
            Request::DrainOrigin { .. } | Request::UndrainOrigin { .. } => drained(&told),
            Request::Cluster(cluster) => cluster.for_humans(cluster.part(&told)),
            Request::Cache { .. } => ctl_cache::for_humans(&told),
            Request::Purge(_) => purged(&told["purged"]),
        })?;
        match &self.request {
            Request::Cluster(cluster) => {
                let by_etcd = told["reports"].as_bool();
                let follow = |(node, wait)| ctl_drain::follow(&path, node, by_etcd, wait);
                cluster.awaited().map_or(Ok(printed), follow)
            }
            _ => Ok(printed),
        }
    }
}

fn drained(told: &Value) -> String {
    let origin = told["origin"].as_str().unwrap_or_default();
    if told["drained"] != true {
        return format!("{origin} gets requests again\n");
    }
    let mut text = format!("{origin} gets no new requests; `baton ctl undrain-origin` ends that\n");
    for bare in told["without_origin"].as_array().into_iter().flatten() {
        let [site, route] = ["site", "route"].map(|key| bare[key].as_str().unwrap_or_default());
        text.push_str(&format!("warning: {route} of {site} has no other origin: clients get 503\n"));
    }
    text
}

fn purged(told: &Value) -> String {
    let count = |key: &str, one: &str| counted(told[key].as_u64().unwrap_or(0), one);
    format!("purged: {} dropped, in {}\n", count("responses", "stored response"), count("workers", "worker"))
}

fn reloaded(told: &Value) -> String {
    if told["resumed"] == true {
        return "the workers are back, with the configuration as it was\n".into();
    }
    let settings = told["needs_restart"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<_> = settings.iter().filter_map(Value::as_str).collect();
    match names[..] {
        [] => "reloaded\n".into(),
        _ => format!("reloaded; needs a restart to take effect: {}\n", names.join(", ")),
    }
}
