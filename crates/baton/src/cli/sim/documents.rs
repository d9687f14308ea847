//! `baton sim documents`: documents that migrate between servers.

use std::path::PathBuf;
use std::process::ExitCode;

use baton_dispatch::migration::LoadMetric;
use baton_sim::compare_documents;
use baton_sim::documents::{DocumentScenario, DocumentSite, HotPage, SiteParameters};
use baton_sim::model::NODES_MAX;
use baton_sim::trace::LogSummary;
use clap::{Args, ValueEnum, ValueHint};

use super::super::output::Failure;
use super::reporting::{Output, Progress};
use super::traces::read_site;
use super::values::nodes;

#[derive(Debug, Args)]
pub(super) struct Documents {
    /// Sites: lod, mapug, sblog, sequoia, which are like the published ones, or
    /// site:pages=117,entries=1,links=10,page_kb=2,images=2,image_kb=2,shared=0,files=0,file_kb=1000; or access logs of one
    /// site, in the combined format: their referrers tell who links to whom
    #[arg(value_name = "SITE|LOG", default_values = ["lod", "mapug", "sblog"], value_hint = ValueHint::FilePath)]
    sites: Vec<PathBuf>,

    /// Numbers of servers
    #[arg(long, value_name = "COUNT,...", value_delimiter = ',', default_value = "1,2,4,8,16", value_parser = nodes)]
    servers: Vec<usize>,

    /// Let so many of the walks begin at one page, from the middle of the run on, in runs of their own; `none` for no such runs
    #[arg(long, value_name = "SHARE%", default_value = "100%", value_parser = hot)]
    hot: Hot,

    /// What the load of a server is
    #[arg(long, value_enum, default_value_t = MetricName::Both)]
    metric: MetricName,

    /// Simulated time of each run, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 36_000, value_parser = clap::value_parser!(u64).range(60..=1_000_000))]
    seconds: u64,

    /// Clients for each server
    #[arg(long, value_name = "COUNT", default_value_t = 24, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    clients: u16,

    /// Change settings of the policy, of servers and of clients:
    /// statistics_s=10,ping_s=20,peer_s=60,recall_s=300,threshold_permille=10,imbalance_percent=120,connection_us=5000,kb_us=80,queue=100,validate_s=120,steps=25,helpers=4
    #[arg(long, value_name = "NAME=VALUE,...", default_value = "", hide_default_value = true)]
    set: String,

    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum MetricName {
    /// Requests per second, for sites of small files
    Requests,
    /// Bytes per second, for sites of large files
    Bytes,
    /// Bytes per second, and 64 KiB for each request
    Both,
}

/// The page that becomes hot, if there is to be one.
#[derive(Clone, Copy, Debug)]
struct Hot(Option<HotPage>);

fn hot(text: &str) -> Result<Hot, String> {
    if text == "none" { Ok(Hot(None)) } else { text.parse().map(|page| Hot(Some(page))) }
}

impl Documents {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let progress = Progress::default();
        let tell = |what: &str, share| progress.tell(what, share);
        let runner = self.output.runner(&tell);
        let mut scenario = DocumentScenario {
            clients_per_server: self.clients.into(),
            seconds: self.seconds,
            seed: self.output.seed,
            ..DocumentScenario::published()
        };
        scenario.migration.metric = match self.metric {
            MetricName::Requests => LoadMetric::Requests,
            MetricName::Bytes => LoadMetric::Bytes,
            MetricName::Both => LoadMetric::Both,
        };
        scenario.migration.peers_max = NODES_MAX;
        scenario.set(&self.set)?;
        runner.announce("making the sites");
        let (sites, summary) = self.sites()?;
        let mut report = compare_documents(runner, &sites, &scenario, &self.servers, self.hot.0);
        report.findings.words.splice(0..0, summary.map(|summary| summary.words()).unwrap_or_default());
        progress.end();
        self.output.write(&[report])
    }

    /// Sites that are made, if all arguments name such; else the one of the logs.
    fn sites(&self) -> Result<(Vec<DocumentSite>, Option<LogSummary>), Failure> {
        let mut made = Vec::new();
        for name in self.sites.iter().filter_map(|path| path.to_str()) {
            match (SiteParameters::named(name), name.strip_prefix("site:")) {
                (Some(site), _) => made.push(site.site(name, self.output.seed)),
                (None, Some(parameters)) => {
                    made.push(SiteParameters::parse(parameters)?.site(name, self.output.seed));
                }
                (None, None) => {}
            }
        }
        if made.len() == self.sites.len() {
            return Ok((made, None));
        }
        if !made.is_empty() {
            return Err(Failure("logs and sites that are made cannot be compared: name either".into()));
        }
        let (site, summary) = read_site(&self.sites)?;
        Ok((vec![site], Some(summary)))
    }
}
