//! The command line of `baton-lab`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use baton_lab::applications::{Programs, Response};
use baton_lab::bench::Workload;
use baton_lab::cluster::TraceKind;
use baton_lab::relay::OriginSocket;
use baton_lab::{proxy, tls};

/// Measures web servers from outside.
#[derive(Parser)]
#[command(version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Load one server and report; exit code 1 if any request failed
    Load(LoadArguments),
    /// Compare Baton with other servers, interleaved, by CPU time per request; prints tables in Markdown
    Bench(BenchArguments),
    /// Compare Baton with other servers with TLS and HTTP/2, as `bench` does; prints tables in Markdown
    Tls(TlsArguments),
    /// Compare Baton with other proxies and caches in front of an origin, as `bench` does; prints tables in Markdown
    Proxy(ProxyArguments),
    /// Compare Baton and nginx compressing a file and an origin's response; prints tables in Markdown
    Compression(CompressionArguments),
    /// Compare what guards, ids and logs cost a cached file; prints tables in Markdown
    Guards(GuardsArguments),
    /// Count the instructions of a worker for a file, a request that is passed on and one from the cache, exactly; prints a
    /// table in Markdown
    Instructions(InstructionsArguments),
    /// Compare how bodies pass through a relay, by reading and writing and by splice; prints tables in Markdown
    Relay(RelayArguments),
    /// See how soon a cache with a folder serves after a crash what it had before; prints a table in Markdown
    Restart(RestartArguments),
    /// Compare architectures and nginx with memory too small for the content and a throttled disk; prints tables in
    /// Markdown. Needs root
    Disk(DiskArguments),
    /// Compare policies, HAProxy and nginx in front of nodes whose memory is too small for the content, each on a host in a
    /// network namespace; prints tables in Markdown, with what the simulator says, whose last line is the ratio of our best
    /// policy to HAProxy's. Needs root
    Cluster(ClusterArguments),
    /// Compare what front-ends before nodes cost: CPU time, bytes, latency; prints tables in Markdown. Needs root
    FrontCost(FrontCostArguments),
    /// Count what clients of a cluster see of faults: nodes that die, are cut off, hang; front-ends that restart; prints a table
    /// in Markdown. Needs root
    ClusterFaults(FaultsArguments),
    /// Measure servers that lend each other documents without a front-end: throughput over their number, and how soon a hot spot
    /// is spread; prints tables in Markdown. Needs root
    Documents(DocumentsArguments),
    /// Show two clusters side by side, one by round robin and one by content, under the same load. Needs root
    DemoCluster(DemoArguments),
    /// Compare nginx and Baton in front of a C program and of php-fpm, by every transport; prints tables in Markdown
    Applications(ApplicationsArguments),
    /// Count how many bytes of applications' responses are copied between processes and the kernel, by path; prints a
    /// table in Markdown
    Copies(CopiesArguments),
    /// See whether clients that read slowly hold up an application, by every transport; prints a table in Markdown.
    /// Needs root
    SlowReaders(SlowReadersArguments),
    /// Write the files that are served in a comparison
    Files {
        /// Where
        folder: PathBuf,
    },
}

#[derive(Args)]
pub(crate) struct LoadArguments {
    /// URLs to request in turn, all on one server: http://HOST[:PORT]/PATH
    #[arg(required = true)]
    pub(crate) urls: Vec<String>,
    /// A file with more paths, one per line, on the server of the first URL
    #[arg(long)]
    pub(crate) paths: Option<PathBuf>,
    /// Connections that ask at the same time
    #[arg(long, short, default_value_t = 64)]
    pub(crate) connections: usize,
    /// How long at most
    #[arg(long, short, default_value_t = 5.0)]
    pub(crate) seconds: f64,
    /// How many requests at most
    #[arg(long, short = 'n')]
    pub(crate) requests: Option<u64>,
    /// A new connection for every request
    #[arg(long)]
    pub(crate) close: bool,
    /// Connections that make one request before and are silent from then on
    #[arg(long, default_value_t = 0)]
    pub(crate) idle: usize,
    /// Requests that are due per second, instead of a new one as soon as a reply is complete; latency counts from
    /// when they are due
    #[arg(long)]
    pub(crate) rate: Option<f64>,
    /// Read every body and check that it never changes, instead of letting the kernel drop it
    #[arg(long)]
    pub(crate) verify: bool,
    /// Sleep when there is nothing to read, instead of spinning. Cheaper for you; but in a virtual machine the wake-up
    /// of a sleeping CPU is charged to the server
    #[arg(long)]
    pub(crate) sleep: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct BenchArguments {
    /// The command of this project
    #[arg(long, default_value = "target/release/baton")]
    pub(crate) baton: PathBuf,
    /// Architectures to run it under
    #[arg(long, value_delimiter = ',', default_value = "auto")]
    pub(crate) architectures: Vec<String>,
    /// More settings for all of them; may be repeated
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    pub(crate) settings: Vec<String>,
    /// CPUs of each server. With one, each has one worker; with more, Baton has as many as the architecture chooses for
    /// them, nginx and h2o one for each. Where no CPU is left for the client, it shares them and sleeps (see --sleep)
    #[arg(long, default_value_t = 1)]
    pub(crate) cpus: usize,
    /// Other servers; the first one that is installed is the reference
    #[arg(long, value_delimiter = ',', default_value = "nginx,lighttpd,h2o,apache2")]
    pub(crate) servers: Vec<String>,
    /// Workloads
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "small,close,page,image,large,mix,idle,log"
    )]
    pub(crate) workloads: Vec<Workload>,
    /// How often each server is measured under each workload; five rounds are the least for figures to publish
    #[arg(long, short = 'n', default_value_t = 5)]
    pub(crate) rounds: usize,
    /// How long each time
    #[arg(long, short, default_value_t = 1.5)]
    pub(crate) seconds: f64,
    /// Where files, configurations and logs are put; kept for the next run
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
    /// Append every single measurement to this file, a line of JSON each
    #[arg(long, short)]
    pub(crate) output: Option<PathBuf>,
    /// Use the network as it is, even as root, instead of a private network namespace
    #[arg(long)]
    pub(crate) shared_network: bool,
    /// Let the client sleep when it has nothing to do (see `baton-lab load --help`)
    #[arg(long)]
    pub(crate) sleep: bool,
}

#[derive(Args)]
pub(crate) struct TlsArguments {
    /// The command of this project
    #[arg(long, default_value = "target/release/baton")]
    pub(crate) baton: PathBuf,
    /// Architectures to run it under
    #[arg(long, value_delimiter = ',', default_value = "auto")]
    pub(crate) architectures: Vec<String>,
    /// More settings for all of them; may be repeated
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    pub(crate) settings: Vec<String>,
    /// Other servers; the first one that is installed is the reference
    #[arg(long, value_delimiter = ',', default_value = "h2o,nginx,lighttpd")]
    pub(crate) servers: Vec<String>,
    /// Workloads
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "small,page,large,h2-small,h2-page,h2-large,h2c-small,h2c-page,h2c-large,full,resumed,idle"
    )]
    pub(crate) workloads: Vec<tls::TlsWorkload>,
    /// How often each server is measured under each workload; five rounds are the least for figures to publish
    #[arg(long, short = 'n', default_value_t = 5)]
    pub(crate) rounds: usize,
    /// How long each time; handshakes take whole seconds
    #[arg(long, short, default_value_t = 2.0)]
    pub(crate) seconds: f64,
    /// Where files, configurations and logs are put; kept for the next run
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct ProxyArguments {
    /// The command of this project; several builds are compared with each other
    #[arg(long = "baton", value_delimiter = ',', default_value = "target/release/baton")]
    pub(crate) batons: Vec<PathBuf>,
    /// More settings for all of them; may be repeated
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    pub(crate) settings: Vec<String>,
    /// Other servers; the first one that is installed is the reference
    #[arg(long, value_delimiter = ',', default_value = "nginx,haproxy,varnishd")]
    pub(crate) servers: Vec<String>,
    /// Workloads
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "pass-small,pass-page,pass-large,hit-small,hit-page,hit-large"
    )]
    pub(crate) workloads: Vec<proxy::ProxyWorkload>,
    /// How often each server is measured under each workload; seven rounds are the least for figures to publish
    #[arg(long, short = 'n', default_value_t = 7)]
    pub(crate) rounds: usize,
    /// How long each time
    #[arg(long, short, default_value_t = 1.0)]
    pub(crate) seconds: f64,
    /// Where files, configurations and logs are put; kept for the next run
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct InstructionsArguments {
    /// The command of this project; several are columns of the table
    #[arg(long = "baton", value_delimiter = ',', default_value = "target/release/baton")]
    pub(crate) batons: Vec<PathBuf>,
    /// A setting of the server, as section.key=value; may be given again
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    pub(crate) settings: Vec<String>,
    /// Where the file and logs are put; kept for the next run
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct GuardsArguments {
    /// The command of this project. Builds behind the first are measured without a setting
    #[arg(long = "baton", value_delimiter = ',', default_value = "target/release/baton")]
    pub(crate) batons: Vec<PathBuf>,
    /// How often each is measured; seven rounds are the least for figures to publish
    #[arg(long, short = 'n', default_value_t = 7)]
    pub(crate) rounds: usize,
    /// How long each time
    #[arg(long, short, default_value_t = 1.0)]
    pub(crate) seconds: f64,
    /// Where files and logs are put; kept for the next run
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct CompressionArguments {
    /// The command of this project
    #[arg(long, default_value = "target/release/baton")]
    pub(crate) baton: PathBuf,
    /// How often each is measured; seven rounds are the least for figures to publish
    #[arg(long, short = 'n', default_value_t = 7)]
    pub(crate) rounds: usize,
    /// How long each time
    #[arg(long, short, default_value_t = 1.0)]
    pub(crate) seconds: f64,
    /// Where files, configurations and logs are put; kept for the next run
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct RelayArguments {
    /// Lengths of bodies, in bytes
    #[arg(long, value_delimiter = ',', default_value = "16384,262144,1048576,67108864")]
    pub(crate) sizes: Vec<u64>,
    /// What connects relay and origin
    #[arg(long, value_delimiter = ',', value_enum, default_value = "tcp,unix")]
    pub(crate) origins: Vec<OriginSocket>,
    /// How often each way is measured for each size
    #[arg(long, short = 'n', default_value_t = 9)]
    pub(crate) rounds: usize,
    /// MiB of bodies that are moved each time
    #[arg(long, default_value_t = 512)]
    pub(crate) megabytes: u64,
}

#[derive(Args)]
pub(crate) struct RestartArguments {
    /// The command of this project
    #[arg(long, default_value = "target/release/baton")]
    pub(crate) baton: PathBuf,
    /// How many objects are stored
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) objects: u64,
    /// Length of each body, in bytes
    #[arg(long, default_value_t = 1000)]
    pub(crate) bytes: usize,
    /// How many of them are compared afterwards
    #[arg(long, default_value_t = 10_000)]
    pub(crate) sample: u64,
    /// Where configuration, log and cache are put
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct DiskArguments {
    /// The command of this project
    #[arg(long, default_value = "target/release/baton")]
    pub(crate) baton: PathBuf,
    /// Architectures to run it under [default: all that it has]
    #[arg(long, value_delimiter = ',')]
    pub(crate) architectures: Vec<String>,
    /// More settings for all of them; may be repeated
    #[arg(long = "set", short = 's', value_name = "SECTION.KEY=VALUE")]
    pub(crate) settings: Vec<String>,
    /// CPUs of each server. Baton has as many workers as the architecture chooses for them, nginx one for each. Where no
    /// CPU is left for the client, it shares them
    #[arg(long, default_value_t = 1)]
    pub(crate) cpus: usize,
    /// Leave nginx out
    #[arg(long)]
    pub(crate) without_nginx: bool,
    /// Memory of each server, page cache included
    #[arg(long, default_value_t = 128)]
    pub(crate) memory_mib: u64,
    /// Rate at which each server may read from its disk, in MB per second
    #[arg(long, default_value_t = 20.0)]
    pub(crate) disk_mb: f64,
    /// How far the kernel reads ahead
    #[arg(long, default_value_t = 128)]
    pub(crate) read_ahead_kb: u32,
    /// How many directories of 5.1 MB the content has; it takes so much memory
    #[arg(long, default_value_t = 100)]
    pub(crate) directories: usize,
    /// How often each server is measured for each of the two questions
    #[arg(long, short = 'n', default_value_t = 2)]
    pub(crate) rounds: usize,
    /// How long each time
    #[arg(long, default_value_t = 1.5)]
    pub(crate) seconds: f64,
    /// How long servers are warmed up, all at once
    #[arg(long, default_value_t = 18.0)]
    pub(crate) warm_up_seconds: f64,
    /// How long each server gets the mix before a measured turn
    #[arg(long, default_value_t = 3.5)]
    pub(crate) lead_seconds: f64,
    /// Where mount points, configurations and logs are put
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct ClusterArguments {
    /// The command of this project
    #[arg(long, default_value = "target/release/baton")]
    pub(crate) baton: PathBuf,
    /// Fewer front-ends, one trace, once, shorter and smaller, unless other options say so: about two minutes
    #[arg(long)]
    pub(crate) quick: bool,
    /// Policies of our front-end; the first is the reference [default: wrr,lb,bounded-hash,lard,lard-r,lard-h, or
    /// wrr,lard-r,lard-h if quick]
    #[arg(long, value_delimiter = ',')]
    pub(crate) policies: Option<Vec<String>>,
    /// Ways of our front-end to the nodes; by `handoff` connections are kept and go where the next file is
    #[arg(long, value_delimiter = ',', default_value = "relay")]
    pub(crate) ways: Vec<String>,
    /// Other front-ends [default: haproxy,nginx, or haproxy if quick]
    #[arg(long, value_delimiter = ',')]
    pub(crate) servers: Option<Vec<String>>,
    /// What clients ask for: mix (SPECweb99's files), zipf:EXPONENT; the last line is about the last [default: mix,zipf:1.0, or
    /// zipf:1.0 if quick]
    #[arg(long, value_delimiter = ',')]
    pub(crate) traces: Option<Vec<TraceKind>>,
    /// How many nodes
    #[arg(long, default_value_t = 6)]
    pub(crate) nodes: usize,
    /// The part of a CPU that each node has
    #[arg(long, default_value_t = 0.05)]
    pub(crate) node_cpus: f64,
    /// Memory of each node, page cache included [default: 48, or 30 if quick]
    #[arg(long)]
    pub(crate) memory_mib: Option<u64>,
    /// Rate at which each node may read from its disk, in MB per second
    #[arg(long, default_value_t = 4.0)]
    pub(crate) disk_mb: f64,
    /// How far the kernel reads ahead
    #[arg(long, default_value_t = 128)]
    pub(crate) read_ahead_kb: u32,
    /// How much content there is, in MB; it takes so much memory [default: 180, or 108 if quick]
    #[arg(long)]
    pub(crate) content_mb: Option<u64>,
    /// Connections of clients
    #[arg(long, default_value_t = 192)]
    pub(crate) connections: usize,
    /// How often each front-end is measured [default: 3, or 1 if quick]
    #[arg(long, short = 'n')]
    pub(crate) rounds: Option<usize>,
    /// How long requests come before each measurement [default: 20, or 8 if quick]
    #[arg(long)]
    pub(crate) warm_up_seconds: Option<f64>,
    /// How long each measurement takes [default: 8, or 4 if quick]
    #[arg(long)]
    pub(crate) seconds: Option<f64>,
    /// Where mount points, configurations and logs are put
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct FrontCostArguments {
    /// The command of this project
    #[arg(long, default_value = "target/release/baton")]
    pub(crate) baton: PathBuf,
    /// Front-ends, beside none; `moved` is the mechanism of a hand-off alone
    #[arg(long, value_delimiter = ',', default_value = "handoff,moved,relay,haproxy,nginx")]
    pub(crate) fronts: Vec<String>,
    /// Lengths of responses
    #[arg(long, value_delimiter = ',', default_value = "1024,16384,102400,1048576,20971520")]
    pub(crate) sizes: Vec<u64>,
    /// How often each is measured
    #[arg(long, short = 'n', default_value_t = 5)]
    pub(crate) rounds: usize,
    /// How long each measurement takes
    #[arg(long, default_value_t = 1.0)]
    pub(crate) seconds: f64,
    /// Where files, configurations and logs are put
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct FaultsArguments {
    /// The command of this project
    #[arg(long, default_value = "target/release/baton")]
    pub(crate) baton: PathBuf,
    /// Ways to the nodes
    #[arg(long, value_delimiter = ',', default_value = "relay,handoff")]
    pub(crate) ways: Vec<String>,
    /// How often each fault happens
    #[arg(long, short = 'n', default_value_t = 3)]
    pub(crate) rounds: usize,
    /// Connections of clients
    #[arg(long, default_value_t = 64)]
    pub(crate) connections: usize,
    /// Where files, configurations and logs are put
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct DocumentsArguments {
    /// The command of this project
    #[arg(long, default_value = "target/release/baton")]
    pub(crate) baton: PathBuf,
    /// Fewer servers, and shorter: about three minutes
    #[arg(long)]
    pub(crate) quick: bool,
    /// Numbers of servers; one of them has the site [default: 1,2,4,6, or 1,2,4 if quick]
    #[arg(long, value_delimiter = ',')]
    pub(crate) servers: Option<Vec<usize>>,
    /// Visitors at a time
    #[arg(long, default_value_t = 64)]
    pub(crate) visitors: usize,
    /// What the link of each server carries away from it, in megabits a second
    #[arg(long, default_value_t = 16)]
    pub(crate) link_mbit: u32,
    /// How long each number of servers is visited [default: 120, or 60 if quick]
    #[arg(long)]
    pub(crate) seconds: Option<f64>,
    /// How much shorter the intervals of the policy are than the usual ones
    #[arg(long, default_value_t = 60)]
    pub(crate) hurry: u64,
    /// Where the site, keys and logs are put
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct DemoArguments {
    /// The command of this project
    #[arg(long, default_value = "target/release/baton")]
    pub(crate) baton: PathBuf,
    /// How long; until it is interrupted unless given
    #[arg(long)]
    pub(crate) seconds: Option<f64>,
    /// Where mount points, configurations and logs are put
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

/// Executables and libraries of this project.
#[derive(Args)]
pub(crate) struct ProgramArguments {
    /// The command of this project
    #[arg(long, default_value = "target/release/baton")]
    pub(crate) baton: PathBuf,
    /// Its drop-in for libfcgi
    #[arg(long, default_value = "target/release/libfcgi.so")]
    pub(crate) libfcgi: PathBuf,
}

#[derive(Args)]
pub(crate) struct ApplicationsArguments {
    #[command(flatten)]
    pub(crate) programs: ProgramArguments,
    /// The library for php-fpm; contenders that need it are left out without it
    #[arg(long)]
    pub(crate) preload: Option<PathBuf>,
    /// The PHP extension; contenders that need it are left out without it
    #[arg(long)]
    pub(crate) php_extension: Option<PathBuf>,
    /// Responses to measure
    #[arg(long, value_delimiter = ',', value_enum, default_value = "32k,128k,1m,4m,php-60k,php-1m")]
    pub(crate) responses: Vec<Response>,
    /// How often each server is measured for each
    #[arg(long, short = 'n', default_value_t = 5)]
    pub(crate) rounds: usize,
    /// How long each time
    #[arg(long, short, default_value_t = 1.0)]
    pub(crate) seconds: f64,
    /// Where programs, configurations and logs are put
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct CopiesArguments {
    #[command(flatten)]
    pub(crate) programs: ProgramArguments,
    /// Lengths of bodies, in bytes
    #[arg(long, value_delimiter = ',', default_value = "32768,131072,1048576,4194304")]
    pub(crate) sizes: Vec<u64>,
    /// How many responses of each are counted
    #[arg(long, default_value_t = 10)]
    pub(crate) responses: u64,
    /// Where programs and notes are put
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct SlowReadersArguments {
    #[command(flatten)]
    pub(crate) programs: ProgramArguments,
    /// Clients that read 1 KB/s
    #[arg(long, default_value_t = 1000)]
    pub(crate) readers: usize,
    /// How many of them come in a second
    #[arg(long, default_value_t = 100.0)]
    pub(crate) readers_per_second: f64,
    /// Length of the response that they read, in bytes
    #[arg(long, default_value_t = 524_288)]
    pub(crate) slow_bytes: u64,
    /// How often each server is measured
    #[arg(long, short = 'n', default_value_t = 1)]
    pub(crate) rounds: usize,
    /// Duration of the fast clients' load, alone and beside the slow ones
    #[arg(long, short, default_value_t = 3.0)]
    pub(crate) seconds: f64,
    /// Where programs, configurations and logs are put
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
}

impl From<ProgramArguments> for Programs {
    fn from(ProgramArguments { baton, libfcgi }: ProgramArguments) -> Self {
        Self { baton, libfcgi }
    }
}
