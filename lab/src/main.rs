//! `baton-lab`: makes load, compares servers, writes the files that they serve.

use std::fs;
use std::io::{self, Write as _};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Args, Parser, Subcommand};

use baton_lab::applications::{self, ApplicationsSettings, Programs, Response};
use baton_lab::bench::{self, BenchSettings, Isolation, Workload};
use baton_lab::copies::{self, CopiesSettings};
use baton_lab::disk::{self, DiskSettings};
use baton_lab::load::{Load, LoadSettings, Request, RequestList};
use baton_lab::slow_readers::{self, SlowReadersSettings};
use baton_lab::tls::{self, TlsSettings};
use baton_lab::{files, mix};

/// Measures web servers from outside.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Load one server and report; exit code 1 if any request failed
    Load(LoadArguments),
    /// Compare Baton with other servers, interleaved, by CPU time per request; prints tables in Markdown
    Bench(BenchArguments),
    /// Compare Baton with other servers with TLS and HTTP/2, as `bench` does; prints tables in Markdown
    Tls(TlsArguments),
    /// Compare architectures and nginx with memory too small for the content and a throttled disk; prints tables in
    /// Markdown. Needs root
    Disk(DiskArguments),
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
struct LoadArguments {
    /// URLs to request in turn, all on one server: http://HOST[:PORT]/PATH
    #[arg(required = true)]
    urls: Vec<String>,
    /// A file with more paths, one per line, on the server of the first URL
    #[arg(long)]
    paths: Option<PathBuf>,
    /// Connections that ask at the same time
    #[arg(long, short, default_value_t = 64)]
    connections: usize,
    /// How long at most
    #[arg(long, short, default_value_t = 5.0)]
    seconds: f64,
    /// How many requests at most
    #[arg(long, short = 'n')]
    requests: Option<u64>,
    /// A new connection for every request
    #[arg(long)]
    close: bool,
    /// Connections that make one request before and are silent from then on
    #[arg(long, default_value_t = 0)]
    idle: usize,
    /// Requests that are due per second, instead of a new one as soon as a reply is complete; latency counts from
    /// when they are due
    #[arg(long)]
    rate: Option<f64>,
    /// Read every body and check that it never changes, instead of letting the kernel drop it
    #[arg(long)]
    verify: bool,
    /// Sleep when there is nothing to read, instead of spinning. Cheaper for you; but in a virtual machine the wake-up
    /// of a sleeping CPU is charged to the server
    #[arg(long)]
    sleep: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct BenchArguments {
    /// The command of this project
    #[arg(long, default_value = "target/release/baton")]
    baton: PathBuf,
    /// Architectures to run it under
    #[arg(long, value_delimiter = ',', default_value = "auto")]
    architectures: Vec<String>,
    /// More settings for all of them; may be repeated
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    settings: Vec<String>,
    /// CPUs of each server. With one, each has one worker; with more, Baton has as many as the architecture chooses for
    /// them, nginx and h2o one for each. Where no CPU is left for the client, it shares them and sleeps (see --sleep)
    #[arg(long, default_value_t = 1)]
    cpus: usize,
    /// Other servers; the first one that is installed is the reference
    #[arg(long, value_delimiter = ',', default_value = "nginx,lighttpd,h2o,apache2")]
    servers: Vec<String>,
    /// Workloads
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "small,close,page,image,large,mix,idle,log"
    )]
    workloads: Vec<Workload>,
    /// How often each server is measured under each workload; five rounds are the least for figures to publish
    #[arg(long, short = 'n', default_value_t = 5)]
    rounds: usize,
    /// How long each time
    #[arg(long, short, default_value_t = 1.5)]
    seconds: f64,
    /// Where files, configurations and logs are put; kept for the next run
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Append every single measurement to this file, a line of JSON each
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Use the network as it is, even as root, instead of a private network namespace
    #[arg(long)]
    shared_network: bool,
    /// Let the client sleep when it has nothing to do (see `baton-lab load --help`)
    #[arg(long)]
    sleep: bool,
}

#[derive(Args)]
struct TlsArguments {
    /// The command of this project
    #[arg(long, default_value = "target/release/baton")]
    baton: PathBuf,
    /// Architectures to run it under
    #[arg(long, value_delimiter = ',', default_value = "auto")]
    architectures: Vec<String>,
    /// More settings for all of them; may be repeated
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    settings: Vec<String>,
    /// Other servers; the first one that is installed is the reference
    #[arg(long, value_delimiter = ',', default_value = "h2o,nginx,lighttpd")]
    servers: Vec<String>,
    /// Workloads
    #[arg(
        long,
        value_delimiter = ',',
        value_enum,
        default_value = "small,page,large,h2-small,h2-page,h2-large,h2c-small,h2c-page,h2c-large,full,resumed,idle"
    )]
    workloads: Vec<tls::Workload>,
    /// How often each server is measured under each workload; five rounds are the least for figures to publish
    #[arg(long, short = 'n', default_value_t = 5)]
    rounds: usize,
    /// How long each time; handshakes take whole seconds
    #[arg(long, short, default_value_t = 2.0)]
    seconds: f64,
    /// Where files, configurations and logs are put; kept for the next run
    #[arg(long)]
    folder: Option<PathBuf>,
}

#[derive(Args)]
struct DiskArguments {
    /// The command of this project
    #[arg(long, default_value = "target/release/baton")]
    baton: PathBuf,
    /// Architectures to run it under [default: all that it has]
    #[arg(long, value_delimiter = ',')]
    architectures: Vec<String>,
    /// More settings for all of them; may be repeated
    #[arg(long = "set", short = 's', value_name = "SECTION.KEY=VALUE")]
    settings: Vec<String>,
    /// CPUs of each server. Baton has as many workers as the architecture chooses for them, nginx one for each. Where no
    /// CPU is left for the client, it shares them
    #[arg(long, default_value_t = 1)]
    cpus: usize,
    /// Leave nginx out
    #[arg(long)]
    without_nginx: bool,
    /// Memory of each server, page cache included
    #[arg(long, default_value_t = 128)]
    memory_mib: u64,
    /// Rate at which each server may read from its disk, in MB per second
    #[arg(long, default_value_t = 20.0)]
    disk_mb: f64,
    /// How far the kernel reads ahead
    #[arg(long, default_value_t = 128)]
    read_ahead_kb: u32,
    /// How many directories of 5.1 MB the content has; it takes so much memory
    #[arg(long, default_value_t = 100)]
    directories: usize,
    /// How often each server is measured for each of the two questions
    #[arg(long, short = 'n', default_value_t = 2)]
    rounds: usize,
    /// How long each time
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// How long servers are warmed up, all at once
    #[arg(long, default_value_t = 18.0)]
    warm_up_seconds: f64,
    /// How long each server gets the mix before a measured turn
    #[arg(long, default_value_t = 3.5)]
    lead_seconds: f64,
    /// Where mount points, configurations and logs are put
    #[arg(long)]
    folder: Option<PathBuf>,
}

/// Executables and libraries of this project.
#[derive(Args)]
struct ProgramArguments {
    /// The command of this project
    #[arg(long, default_value = "target/release/baton")]
    baton: PathBuf,
    /// Its drop-in for libfcgi
    #[arg(long, default_value = "target/release/libfcgi.so")]
    libfcgi: PathBuf,
}

#[derive(Args)]
struct ApplicationsArguments {
    #[command(flatten)]
    programs: ProgramArguments,
    /// The library for php-fpm; contenders that need it are left out without it
    #[arg(long)]
    preload: Option<PathBuf>,
    /// The PHP extension; contenders that need it are left out without it
    #[arg(long)]
    php_extension: Option<PathBuf>,
    /// Responses to measure
    #[arg(long, value_delimiter = ',', value_enum, default_value = "32k,128k,1m,4m,php-60k,php-1m")]
    responses: Vec<Response>,
    /// How often each server is measured for each
    #[arg(long, short = 'n', default_value_t = 5)]
    rounds: usize,
    /// How long each time
    #[arg(long, short, default_value_t = 1.0)]
    seconds: f64,
    /// Where programs, configurations and logs are put
    #[arg(long)]
    folder: Option<PathBuf>,
}

#[derive(Args)]
struct CopiesArguments {
    #[command(flatten)]
    programs: ProgramArguments,
    /// Lengths of bodies, in bytes
    #[arg(long, value_delimiter = ',', default_value = "32768,131072,1048576,4194304")]
    sizes: Vec<u64>,
    /// How many responses of each are counted
    #[arg(long, default_value_t = 10)]
    responses: u64,
    /// Where programs and notes are put
    #[arg(long)]
    folder: Option<PathBuf>,
}

#[derive(Args)]
struct SlowReadersArguments {
    #[command(flatten)]
    programs: ProgramArguments,
    /// Clients that read 1 KB/s
    #[arg(long, default_value_t = 1000)]
    readers: usize,
    /// How many of them come in a second
    #[arg(long, default_value_t = 100.0)]
    readers_per_second: f64,
    /// Length of the response that they read, in bytes
    #[arg(long, default_value_t = 524_288)]
    slow_bytes: u64,
    /// How often each server is measured
    #[arg(long, short = 'n', default_value_t = 1)]
    rounds: usize,
    /// Duration of the fast clients' load, alone and beside the slow ones
    #[arg(long, short, default_value_t = 3.0)]
    seconds: f64,
    /// Where programs, configurations and logs are put
    #[arg(long)]
    folder: Option<PathBuf>,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Load(arguments) => load(&arguments),
        Command::Bench(arguments) => bench(arguments),
        Command::Tls(arguments) => compare_tls(arguments),
        Command::Disk(arguments) => disk(arguments),
        Command::Applications(arguments) => compare_applications(arguments),
        Command::Copies(arguments) => copies(arguments),
        Command::SlowReaders(arguments) => slow_readers(arguments),
        Command::Files { folder } => {
            files::write_all(&folder, mix::DIRECTORIES).map(|()| true).map_err(Into::into)
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("baton-lab: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every request succeeded.
fn load(arguments: &LoadArguments) -> Result<bool> {
    let mut targets = arguments.urls.iter().map(|url| target(url)).collect::<Result<Vec<_>>>()?;
    let address = targets[0].0;
    ensure!(targets.iter().all(|(other, _)| *other == address), "all URLs must be on one server");
    if let Some(file) = &arguments.paths {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        targets
            .extend(text.lines().filter(|line| line.starts_with('/')).map(|path| (address, path.to_owned())));
    }
    let settings = LoadSettings {
        address,
        connections: arguments.connections,
        connection_per_request: arguments.close,
        idle_connections: arguments.idle,
        requests_per_second: arguments.rate,
        duration: duration(arguments.seconds)?,
        requests_max: arguments.requests,
        sleep: arguments.sleep,
        verify: arguments.verify,
    };
    let requests = targets.into_iter().map(|(_, path)| Request { path, bytes: None });
    let requests = RequestList::new(address, arguments.close, requests);
    let report = Load::connect(&settings, requests)?.run()?;
    if arguments.json {
        print(&format!("{}\n", serde_json::to_string(&report.figures())?))?;
    } else {
        print(&report.figures().to_string())?;
    }
    Ok(report.failed() == 0)
}

fn bench(arguments: BenchArguments) -> Result<bool> {
    ensure!(arguments.rounds > 0, "a comparison needs a round");
    let isolation = if arguments.shared_network { Isolation::None } else { Isolation::WhenRoot };
    let settings = BenchSettings {
        baton: arguments.baton,
        architectures: arguments.architectures,
        baton_settings: arguments.settings,
        cpus: arguments.cpus,
        others: arguments.servers,
        workloads: arguments.workloads,
        rounds: arguments.rounds,
        duration: duration(arguments.seconds)?,
        folder: arguments.folder.unwrap_or_else(|| std::env::temp_dir().join("baton-lab")),
        output: arguments.output,
        isolation,
        sleep: arguments.sleep,
    };
    print(&format!("{}\n", bench::run(&settings)?))?;
    Ok(true)
}

fn compare_tls(arguments: TlsArguments) -> Result<bool> {
    ensure!(arguments.rounds > 0, "a comparison needs a round");
    let settings = TlsSettings {
        baton: arguments.baton,
        architectures: arguments.architectures,
        baton_settings: arguments.settings,
        others: arguments.servers,
        workloads: arguments.workloads,
        rounds: arguments.rounds,
        duration: duration(arguments.seconds)?,
        folder: arguments.folder.unwrap_or_else(|| std::env::temp_dir().join("baton-lab")),
    };
    print(&format!("{}\n", tls::run(&settings)?))?;
    Ok(true)
}

fn disk(arguments: DiskArguments) -> Result<bool> {
    ensure!(arguments.rounds > 0 && arguments.directories > 0, "a comparison needs a round and content");
    let settings = DiskSettings {
        baton: arguments.baton,
        architectures: arguments.architectures,
        baton_settings: arguments.settings,
        cpus: arguments.cpus,
        nginx: !arguments.without_nginx,
        memory_mib: arguments.memory_mib,
        disk_mb_per_s: arguments.disk_mb,
        read_ahead_kb: arguments.read_ahead_kb,
        directories: arguments.directories,
        rounds: arguments.rounds,
        duration: duration(arguments.seconds)?,
        warm_up: duration(arguments.warm_up_seconds)?,
        lead: duration(arguments.lead_seconds)?,
        folder: arguments.folder.unwrap_or_else(|| std::env::temp_dir().join("baton-lab-disk")),
    };
    print(&format!("{}\n", disk::run(&settings)?))?;
    Ok(true)
}

fn compare_applications(arguments: ApplicationsArguments) -> Result<bool> {
    ensure!(arguments.rounds > 0, "a comparison needs a round");
    let settings = ApplicationsSettings {
        programs: arguments.programs.into(),
        preload: arguments.preload,
        php_extension: arguments.php_extension,
        responses: arguments.responses,
        rounds: arguments.rounds,
        duration: duration(arguments.seconds)?,
        folder: applications_folder(arguments.folder),
    };
    print(&format!("{}\n", applications::run(&settings)?))?;
    Ok(true)
}

fn applications_folder(given: Option<PathBuf>) -> PathBuf {
    given.unwrap_or_else(|| std::env::temp_dir().join("baton-lab-applications"))
}

fn copies(arguments: CopiesArguments) -> Result<bool> {
    ensure!(arguments.responses > 0, "nothing is counted without a response");
    let settings = CopiesSettings {
        programs: arguments.programs.into(),
        sizes: arguments.sizes,
        responses: arguments.responses,
        folder: applications_folder(arguments.folder),
    };
    print(&format!("{}\n", copies::run(&settings)?))?;
    Ok(true)
}

fn slow_readers(arguments: SlowReadersArguments) -> Result<bool> {
    ensure!(arguments.rounds > 0 && arguments.readers > 0, "a comparison needs a round and readers");
    ensure!(arguments.readers_per_second > 0.0, "readers must come");
    let settings = SlowReadersSettings {
        programs: arguments.programs.into(),
        readers: arguments.readers,
        readers_per_second: arguments.readers_per_second,
        slow_bytes: arguments.slow_bytes,
        rounds: arguments.rounds,
        duration: duration(arguments.seconds)?,
        folder: applications_folder(arguments.folder),
    };
    print(&format!("{}\n", slow_readers::run(&settings)?))?;
    Ok(true)
}

/// Prints a result. A reader that has seen enough (`baton-lab load … | head`) is no failure.
fn print(text: &str) -> Result<()> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

impl From<ProgramArguments> for Programs {
    fn from(ProgramArguments { baton, libfcgi }: ProgramArguments) -> Self {
        Self { baton, libfcgi }
    }
}

fn duration(seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds).with_context(|| format!("{seconds} is not a number of seconds"))
}

/// Server and path of a URL.
fn target(url: &str) -> Result<(SocketAddr, String)> {
    let rest = url.strip_prefix("http://").with_context(|| format!("{url}: only http:// is spoken here"))?;
    let (authority, path) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
    let with_port = if authority.parse::<SocketAddr>().is_ok()
        || authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok())
    {
        authority.to_owned()
    } else {
        format!("{authority}:80")
    };
    let mut addresses = with_port.to_socket_addrs().with_context(|| format!("{url}: unknown host"))?;
    Ok((addresses.next().with_context(|| format!("{url}: the host has no address"))?, path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_an_address_and_a_path() {
        let parts = |url| target(url).map(|(address, path)| format!("{address} {path}")).unwrap();
        assert_eq!(parts("http://127.0.0.1:8080/a/b?c"), "127.0.0.1:8080 /a/b?c");
        assert_eq!(parts("http://127.0.0.1"), "127.0.0.1:80 /");
        assert_eq!(parts("http://[::1]:81/x"), "[::1]:81 /x");
        assert_eq!(parts("http://[::1]/x"), "[::1]:80 /x");
        assert!(target("https://127.0.0.1/").is_err());
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }
}
