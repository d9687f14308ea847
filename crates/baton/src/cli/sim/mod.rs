//! `baton sim`: distribution policies judged by a simulated cluster.

mod cache;
mod documents;
mod reporting;
mod traces;
mod values;

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::process::ExitCode;

use baton_dispatch::PolicyName;
use baton_segment::policy::PolicyName as CachePolicyName;
use baton_sim::documents::SiteParameters;
use baton_sim::experiments::{Experiment, Lab};
use baton_sim::model::{
    Arrivals, Change, FrontEnds, NODES_MAX, NodeChange, NodeProfile, Scenario, Sharing, Way,
};
use baton_sim::report::SimulationReport;
use baton_sim::trace::{HotTargets, Trace, with_hot_targets};
use baton_sim::{Wish, advise, compare};
use clap::{Args, Subcommand, ValueHint};

use self::cache::Cache;
use self::documents::Documents;
use self::reporting::{Output, Progress};
use self::traces::{BuiltIn, make_or_read, read_logs};
use self::values::{factor, nodes};
use super::output::{Failure, print};

/// Simulate a cluster: which policy, how many nodes, how much memory would a site need?
///
/// A front-end that looks at what is asked for can send requests for the same target to the same node, so that the
/// memories of the nodes add up. What that is worth depends on the site. The simulator runs a site's access log, or a log
/// made from published statistics, through a cluster, with the very policies that a front-end runs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Sim {
    #[command(subcommand)]
    what: What,
}

const EXAMPLES: &str = "\
Examples:
  baton sim advise access.log access.log.*.gz        what this site needs, in plain words
  baton sim compare access.log --nodes 2,4,8         policies side by side on this site
  baton sim compare rice --change fail:0@33% --change recover:0@66% --front-ends 4
                                                     through a failure, with four front-ends
  baton sim cache media                              policies of the shared cache, on sessions with films
  baton sim documents lod sblog                      servers that lend each other documents, without a front-end
  baton sim run rice-throughput --out figures        a published figure, ours beside it
  baton sim run all --out figures                    all of them: figures/index.html";

#[derive(Debug, Subcommand)]
enum What {
    /// List the experiments, the policies, the traces, and the node profiles with their settings
    List,
    /// Run experiments: the published figures, and our own claims
    ///
    /// Each tells what is published, what came out here, and whether the shape holds; `baton sim list` names them. All
    /// together take some minutes. The same seed gives the same numbers on any machine.
    Run(Run),
    /// Compare policies on access logs, or on a built-in trace
    ///
    /// For each policy and number of nodes: throughput, cache misses, idle time, mean delay, the delay that 99 % of the
    /// requests do not exceed, and how many targets were moved or replicated. Requests come as fast as the cluster takes
    /// them, unless --rate lets them come at random moments.
    Compare(Compare),
    /// Tell from access logs which policy, how many nodes and how much memory the site needs
    ///
    /// The log is replayed on clusters of growing size, with less and with more memory in each node, until they do as many
    /// requests a second as the busiest second of the log had. Memory is warm. A log too short for an answer gets that as the
    /// answer. Lines that are no entries are counted, shown once for each fault, and skipped.
    Advise(Advise),
    /// Compare policies of the shared cache: what they keep of films and files, and what that saves the origin
    ///
    /// For each policy and size of the cache: the bytes that the origin need not send, hits, delayed starts, and what was
    /// fetched and never read, from when the cache is warm. Requests of logs come a millisecond apart.
    Cache(Cache),
    /// Let documents migrate between servers, by the links that lead to them: what that makes of a site
    ///
    /// A home server lends documents to its peers while it is busier than they are, and rewrites the links to them (DCWS).
    /// Clients walk along links. For each site and number of servers: throughput, how long it takes to settle, documents
    /// moved, redirects; and the same with a page that becomes hot in the middle of the run.
    Documents(Documents),
}

#[derive(Debug, Args)]
struct Run {
    /// Experiments by name, or `all`
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,

    /// Make the requests of each trace this many times as many; claims hold at 1 only
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    scale: f64,

    /// Judge claims about our own policy, which hang on a few per cent, by the median of this many seeds
    #[arg(long, value_name = "COUNT", default_value = "5")]
    seeds: NonZeroU32,

    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
struct Compare {
    /// Access logs (common or combined format, JSON of Baton or Caddy, plain or gzip; `-` is the standard input), or one of rice, ibm, chess,
    /// zipf, zipf:targets=40000,alpha=0.9,kb=16,requests=1000000
    #[arg(required = true, value_name = "LOG|TRACE", value_hint = ValueHint::FilePath)]
    traces: Vec<PathBuf>,

    /// Policies to compare
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "lard-h,lard-r,bounded-hash,wrr"
    )]
    policies: Vec<PolicyName>,

    /// Numbers of nodes
    #[arg(long, value_name = "COUNT,...", value_delimiter = ',', default_value = "1,2,4,8,16", value_parser = nodes)]
    nodes: Vec<usize>,

    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
struct Advise {
    /// Access logs (common or combined format, JSON of Baton or Caddy, plain or gzip; `-` is the standard input)
    #[arg(required = true, value_name = "LOG", value_hint = ValueHint::FilePath)]
    logs: Vec<PathBuf>,

    /// Requests a second that the cluster shall do [default: those of the log's busiest second]
    #[arg(long, value_name = "REQUESTS/S", value_parser = factor)]
    need: Option<f64>,

    /// How many times as many requests as the log has
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    growth: f64,

    /// Nodes that may fail without harm
    #[arg(long, value_name = "NODES", default_value_t = 1)]
    spare: usize,

    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    output: Output,
}

/// What the cluster is made of and what happens to it.
#[derive(Debug, Args)]
struct Cluster {
    /// Kind of node [default: published for built-in traces, nvme for logs]
    #[arg(long, value_parser = NodeProfile::NAMES, help_heading = "Cluster")]
    profile: Option<String>,

    /// Change settings of the nodes, as in cpus=16,cache_mb=2048; `baton sim list` names all of them
    #[arg(
        long,
        value_name = "NAME=VALUE,...",
        default_value = "",
        hide_default_value = true,
        help_heading = "Cluster"
    )]
    set: String,

    /// Weights of the nodes, in hundredths of a standard node: one for all, or one for each, which also says how many
    /// there are
    #[arg(
        long,
        value_name = "WEIGHT,...",
        value_delimiter = ',',
        default_value = "100",
        help_heading = "Cluster"
    )]
    weights: Vec<NonZeroU32>,

    /// Front-ends
    #[arg(long, value_name = "COUNT", default_value = "1", help_heading = "Cluster")]
    front_ends: NonZeroUsize,

    /// What front-ends know of each other: nothing, loads (of the nodes), everything
    #[arg(long, default_value_t = Sharing::Nothing, help_heading = "Cluster")]
    sharing: Sharing,

    /// What a request costs its front-end, in microseconds
    #[arg(long, value_name = "US", default_value_t = 0.0, help_heading = "Cluster")]
    front_end_us: f64,

    /// How requests get to nodes, at the costs that were measured: relay, handoff, or auto, the server's choice [default: at no cost]
    #[arg(long, value_name = "WAY", help_heading = "Cluster")]
    way: Option<Way>,

    /// Let requests come at random, so many a second [default: as fast as the cluster takes them]
    #[arg(long, value_name = "REQUESTS/S", value_parser = factor, help_heading = "Cluster")]
    rate: Option<f64>,

    /// Let requests come from so many clients, each of which waits for its answer [default: as fast as the cluster takes
    /// them]
    #[arg(long, value_name = "COUNT", conflicts_with = "rate", help_heading = "Cluster")]
    clients: Option<NonZeroU32>,

    /// Let something happen to a node after a share of the requests: fail:0@50%, recover:0@70%, drain:2@10%, join@30%,
    /// join:200@30% (of weight 200), lose:0/8@50% (an eighth of a node), regain:0@70% (all of it again); nodes count from
    /// 0. May be given several times
    #[arg(long = "change", value_name = "CHANGE", help_heading = "Cluster")]
    changes: Vec<Change>,

    /// Connections of a node below which it is likely to be idle (T_low)
    #[arg(long, value_name = "CONNECTIONS", default_value_t = 25, help_heading = "Cluster")]
    t_low: u32,

    /// Connections of a node above which requests are delayed (T_high)
    #[arg(long, value_name = "CONNECTIONS", default_value_t = 65, help_heading = "Cluster")]
    t_high: u32,

    /// Add hot targets: their share in the requests, how many, and their size in KB, as 45%,4,40
    #[arg(long, value_name = "SHARE%,COUNT,KB", help_heading = "Cluster")]
    hot: Option<HotTargets>,

    /// Use the first requests only [default: all; of logs a million for advice]
    #[arg(long, value_name = "COUNT", help_heading = "Cluster")]
    requests: Option<usize>,
}

impl Sim {
    /// Does what is asked for, and prints it.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        match &self.what {
            What::List => print(&list()),
            What::Run(run) => run.run(),
            What::Compare(compare) => compare.run(),
            What::Advise(advise) => advise.run(),
            What::Cache(cache) => cache.run(),
            What::Documents(documents) => documents.run(),
        }
    }
}

impl Run {
    fn run(&self) -> Result<ExitCode, Failure> {
        let experiments = if self.names.iter().any(|name| name == "all") {
            Experiment::ALL.to_vec()
        } else {
            let named = |name: &String| {
                Experiment::named(name)
                    .ok_or_else(|| Failure(format!("there is no experiment {name:?}; see baton sim list")))
            };
            self.names.iter().map(named).collect::<Result<_, _>>()?
        };
        let progress = Progress::default();
        let tell = |what: &str, share| progress.tell(what, share);
        let mut lab = Lab::new(self.output.seed, self.scale, self.output.runner(&tell))
            .with_seeds(self.seeds.get().into());
        let reports: Vec<SimulationReport> =
            experiments.iter().map(|experiment| experiment.run(&mut lab)).collect();
        progress.end();
        self.output.write(&reports)
    }
}

impl Compare {
    fn run(&self) -> Result<ExitCode, Failure> {
        let progress = Progress::default();
        let tell = |what: &str, share| progress.tell(what, share);
        let runner = self.output.runner(&tell);
        // What is wrong with the flags is told before the work begins: reading logs may take minutes.
        let usual = if BuiltIn::named(&self.traces).is_some() {
            NodeProfile::published()
        } else {
            NodeProfile::nvme()
        };
        let scenario = self.cluster.scenario(usual, self.output.seed)?;
        let nodes =
            if scenario.weights.len() > 1 { vec![scenario.weights.len()] } else { self.nodes.clone() };
        check_changes(&scenario.changes, nodes.iter().copied().max().unwrap_or(0))?;
        runner.announce("making the trace");
        let (trace, summary) = make_or_read(&self.traces, self.output.seed)?;
        let trace = self.cluster.shape(trace, self.output.seed);
        let mut report = compare(runner, &trace, &scenario, &self.policies, &nodes);
        report.findings.words.splice(0..0, summary.map(|summary| summary.words()).unwrap_or_default());
        progress.end();
        self.output.write(&[report])
    }
}

impl Advise {
    fn run(&self) -> Result<ExitCode, Failure> {
        let progress = Progress::default();
        let tell = |what: &str, share| progress.tell(what, share);
        let runner = self.output.runner(&tell);
        let scenario = self.cluster.scenario(NodeProfile::nvme(), self.output.seed)?;
        runner.announce("reading the logs");
        let (trace, summary) = read_logs(&self.logs)?;
        let trace = self
            .cluster
            .shape(trace.prefix(self.cluster.requests.unwrap_or(ADVICE_REQUESTS)), self.output.seed);
        let from_log = Wish::from_log(&summary, self.growth, self.spare);
        let wish = Wish { per_s: self.need.unwrap_or(from_log.per_s), ..from_log };
        let mut report = advise(runner, &trace, &scenario, wish);
        if self.need.is_none() {
            report.findings.words.push(format!(
                "The requests a second are those of the busiest second within {:.1} hours, times {}. Another part of the log has \
                 another one: if you know the site's, give it with --need.",
                summary.span_s as f64 / 3600.0,
                self.growth
            ));
        }
        report.findings.words.splice(0..0, summary.words());
        progress.end();
        self.output.write(&[report])
    }
}

/// Enough to see which files matter, and few enough for an answer within a minute.
const ADVICE_REQUESTS: usize = 1_000_000;

impl Cluster {
    fn scenario(&self, usual: NodeProfile, seed: u64) -> Result<Scenario, Failure> {
        if self.t_high <= self.t_low {
            return Err(Failure("--t-high has to be more than --t-low".into()));
        }
        let mut profile = self.profile.as_deref().and_then(NodeProfile::named).unwrap_or(usual);
        profile.set(&self.set).map_err(Failure)?;
        let mut scenario = Scenario::published(PolicyName::LardH, 1);
        scenario.profile = profile;
        scenario.settings.t_low = self.t_low;
        scenario.settings.t_high = self.t_high;
        scenario.weights = self.weights.iter().map(|weight| weight.get()).take(NODES_MAX).collect();
        scenario.front_ends = FrontEnds {
            count: self.front_ends.get(),
            sharing: self.sharing,
            cost_us: self.front_end_us.max(0.0),
            way: self.way,
        };
        if let Some(per_s) = self.rate {
            scenario.arrivals = Arrivals::Random { per_s };
        }
        if let Some(clients) = self.clients {
            scenario.arrivals = Arrivals::Closed { clients: clients.get() };
        }
        scenario.changes.clone_from(&self.changes);
        scenario.seed = seed;
        Ok(scenario)
    }

    /// The trace with what the flags change about it.
    fn shape(&self, trace: Trace, seed: u64) -> Trace {
        let trace = match self.requests {
            Some(requests) => trace.prefix(requests),
            None => trace,
        };
        match self.hot {
            Some(hot) => with_hot_targets(&trace, hot, seed),
            None => trace,
        }
    }
}

fn list() -> String {
    let mut text = String::from("Experiments (baton sim run NAME...):\n");
    for experiment in Experiment::ALL {
        text += &format!("  {:16} {} ({})\n", experiment.name, experiment.title, experiment.source);
    }
    text += "\nPolicies (--policies):\n";
    for policy in PolicyName::ALL {
        text += &format!("  {:17} {}\n", policy.as_str(), policy.summary());
    }
    text += "\nPolicies of caches (baton sim cache --policies):\n";
    for policy in CachePolicyName::ALL {
        text += &format!("  {:17} {}\n", policy.as_str(), policy.summary());
    }
    text += &format!(
        "\nSites of documents that migrate (baton sim documents): {}, site:pages=N,...\n",
        SiteParameters::NAMES.join(", ")
    );
    text += "\nTraces: rice, ibm, chess, zipf, zipf:targets=N,alpha=A,kb=K,requests=N, or access logs\n";
    text += "\nNode profiles (--profile), and their settings (--set NAME=VALUE,...):\n";
    let row = |name: &str, cells: &[&str]| {
        let cells: String = cells.iter().map(|cell| format!("{cell:>12}")).collect();
        format!("  {name:20}{cells}\n")
    };
    text += &row("", &NodeProfile::NAMES);
    for ((name, published), (_, nvme)) in
        NodeProfile::published().settings().zip(NodeProfile::nvme().settings())
    {
        text += &row(name, &[&published, &nvme]);
    }
    text
}

/// Refuses changes of nodes that not even the largest cluster has.
fn check_changes(changes: &[Change], nodes: usize) -> Result<(), Failure> {
    let joining = changes.iter().filter(|change| matches!(change.what, NodeChange::Join(_))).count();
    for change in changes {
        let node = match change.what {
            NodeChange::Fail(node) | NodeChange::Recover(node) | NodeChange::Drain(node) => node,
            NodeChange::LosePart { node, .. } | NodeChange::RegainParts(node) => node,
            NodeChange::Join(_) => continue,
        };
        if node as usize >= nodes + joining {
            return Err(Failure(format!("--change {change}: there is no node {node}; nodes count from 0")));
        }
    }
    Ok(())
}
