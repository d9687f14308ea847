//! `baton-lab`: makes load, compares servers, writes the files that they serve.

mod arguments;

use std::fs;
use std::io::{self, Write as _};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser as _;

use baton_lab::applications::{self, ApplicationsSettings};
use baton_lab::bench::{self, BenchSettings, Isolation};
use baton_lab::cluster::demo::{self, DemoSettings};
use baton_lab::cluster::{self, ClusterBounds, ClusterSettings, TraceKind};
use baton_lab::cluster_faults::{self, FaultsSettings};
use baton_lab::compression::{self, CompressionSettings};
use baton_lab::copies::{self, CopiesSettings};
use baton_lab::disk::{self, DiskSettings};
use baton_lab::documents::{self, DocumentsSettings};
use baton_lab::front_cost::{self, FrontCostSettings};
use baton_lab::guards::{self, GuardsSettings};
use baton_lab::instructions::{self, InstructionsSettings};
use baton_lab::load::{Load, LoadRequest, LoadSettings, RequestList};
use baton_lab::proxy::{self, ProxySettings};
use baton_lab::relay::{self, RelaySettings};
use baton_lab::restart::{self, RestartSettings};
use baton_lab::slow_readers::{self, SlowReadersSettings};
use baton_lab::tls::{self, TlsSettings};
use baton_lab::{files, mix};

use arguments::{
    ApplicationsArguments, Arguments, BenchArguments, ClusterArguments, Command, CompressionArguments,
    CopiesArguments, DemoArguments, DiskArguments, DocumentsArguments, FaultsArguments, FrontCostArguments,
    GuardsArguments, InstructionsArguments, LoadArguments, ProxyArguments, RelayArguments, RestartArguments,
    SlowReadersArguments, TlsArguments,
};

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Load(arguments) => load(&arguments),
        Command::Bench(arguments) => bench(arguments),
        Command::Tls(arguments) => compare_tls(arguments),
        Command::Proxy(arguments) => compare_proxies(arguments),
        Command::Guards(arguments) => compare_guards(arguments),
        Command::Instructions(arguments) => count_instructions(arguments),
        Command::Compression(arguments) => compare_compression(arguments),
        Command::Relay(arguments) => compare_relays(arguments),
        Command::Restart(arguments) => restart(arguments),
        Command::Cluster(arguments) => compare_policies(arguments),
        Command::FrontCost(arguments) => compare_front_ends(arguments),
        Command::ClusterFaults(arguments) => count_faults(arguments),
        Command::Documents(arguments) => lend_documents(arguments),
        Command::DemoCluster(arguments) => demonstrate_cluster(arguments),
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
    let requests = targets.into_iter().map(|(_, path)| LoadRequest::page(path, None));
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

fn compare_proxies(arguments: ProxyArguments) -> Result<bool> {
    ensure!(arguments.rounds > 0, "a comparison needs a round");
    let settings = ProxySettings {
        batons: arguments.batons,
        baton_settings: arguments.settings,
        others: arguments.servers,
        workloads: arguments.workloads,
        rounds: arguments.rounds,
        duration: duration(arguments.seconds)?,
        folder: arguments.folder.unwrap_or_else(|| std::env::temp_dir().join("baton-lab-proxy")),
    };
    print(&format!("{}\n", proxy::run(&settings)?))?;
    Ok(true)
}

fn compare_guards(arguments: GuardsArguments) -> Result<bool> {
    ensure!(arguments.rounds > 0, "a comparison needs a round");
    let settings = GuardsSettings {
        batons: arguments.batons,
        rounds: arguments.rounds,
        duration: duration(arguments.seconds)?,
        folder: arguments.folder.unwrap_or_else(|| std::env::temp_dir().join("baton-lab-guards")),
    };
    print(&format!("{}\n", guards::run(&settings)?))?;
    Ok(true)
}

fn count_instructions(arguments: InstructionsArguments) -> Result<bool> {
    let settings = InstructionsSettings {
        batons: arguments.batons,
        baton_settings: arguments.settings,
        folder: arguments.folder.unwrap_or_else(|| std::env::temp_dir().join("baton-lab-instructions")),
    };
    print(&instructions::run(&settings)?)?;
    Ok(true)
}

fn compare_compression(arguments: CompressionArguments) -> Result<bool> {
    ensure!(arguments.rounds > 0, "a comparison needs a round");
    let settings = CompressionSettings {
        baton: arguments.baton,
        rounds: arguments.rounds,
        duration: duration(arguments.seconds)?,
        folder: arguments.folder.unwrap_or_else(|| std::env::temp_dir().join("baton-lab-compression")),
    };
    print(&format!("{}\n", compression::run(&settings)?))?;
    Ok(true)
}

fn compare_relays(arguments: RelayArguments) -> Result<bool> {
    ensure!(arguments.rounds > 0, "a comparison needs a round");
    ensure!(arguments.sizes.iter().all(|size| *size > 0), "bodies have a length");
    let RelayArguments { sizes, origins, rounds, megabytes } = arguments;
    let settings = RelaySettings { sizes, origins, rounds, bytes: megabytes << 20 };
    print(&format!("{}\n", relay::run(&settings)?))?;
    Ok(true)
}

fn restart(arguments: RestartArguments) -> Result<bool> {
    let RestartArguments { baton, objects, bytes, sample, folder } = arguments;
    ensure!(objects > 0 && sample > 0, "nothing is found again without an object");
    let folder = folder.unwrap_or_else(|| std::env::temp_dir().join("baton-lab-restart"));
    print(&format!("{}\n", restart::run(&RestartSettings { baton, objects, bytes, sample, folder })?))?;
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

fn compare_policies(arguments: ClusterArguments) -> Result<bool> {
    ensure!(arguments.rounds != Some(0) && arguments.nodes > 0, "a comparison needs a round and nodes");
    ensure!(arguments.content_mb != Some(0) && arguments.connections > 0, "nothing is asked for");
    ensure!(
        (0.001..=1.0).contains(&arguments.node_cpus),
        "a node has between 0.001 of a CPU and a whole one"
    );
    let quick = arguments.quick;
    // A smaller cluster fills its memory sooner.
    let (memory_mib, content_mb) = if quick { (30, 108) } else { (48, 180) };
    let named = |given: Option<Vec<String>>, full: &[&str], short: &[&str]| {
        let usual = if quick { short } else { full };
        given.unwrap_or_else(|| usual.iter().map(|name| (*name).to_owned()).collect())
    };
    let usual = |given: Option<f64>, full: f64, short: f64| given.unwrap_or(if quick { short } else { full });
    let settings = ClusterSettings {
        baton: arguments.baton,
        policies: named(
            arguments.policies,
            &["wrr", "lb", "bounded-hash", "lard", "lard-r", "lard-h"],
            &["wrr", "lard-r", "lard-h"],
        ),
        ways: arguments.ways,
        others: named(arguments.servers, &["haproxy", "nginx"], &["haproxy"]),
        traces: arguments.traces.unwrap_or_else(|| match quick {
            true => vec![TraceKind::Zipf(1.0)],
            false => vec![TraceKind::Mix, TraceKind::Zipf(1.0)],
        }),
        rounds: arguments.rounds.unwrap_or(if quick { 1 } else { 3 }),
        warm_up: duration(usual(arguments.warm_up_seconds, 20.0, 8.0))?,
        duration: duration(usual(arguments.seconds, 8.0, 4.0))?,
        cluster: ClusterBounds {
            nodes: arguments.nodes,
            node_cpus: arguments.node_cpus,
            memory_mib: arguments.memory_mib.unwrap_or(memory_mib),
            disk_mb_per_s: arguments.disk_mb,
            read_ahead_kb: arguments.read_ahead_kb,
            content_mb: arguments.content_mb.unwrap_or(content_mb),
            connections: arguments.connections,
        },
        folder: arguments.folder.unwrap_or_else(|| std::env::temp_dir().join("baton-lab-cluster")),
    };
    print(&cluster::run(&settings)?)?;
    Ok(true)
}

fn compare_front_ends(arguments: FrontCostArguments) -> Result<bool> {
    ensure!(arguments.rounds > 0, "a comparison needs a round");
    ensure!(arguments.sizes.iter().all(|size| *size > 0), "bodies have a length");
    let settings = FrontCostSettings {
        baton: arguments.baton,
        fronts: arguments.fronts,
        sizes: arguments.sizes,
        rounds: arguments.rounds,
        duration: duration(arguments.seconds)?,
        folder: arguments.folder.unwrap_or_else(|| std::env::temp_dir().join("baton-lab-front-cost")),
    };
    print(&front_cost::run(&settings)?)?;
    Ok(true)
}

fn count_faults(arguments: FaultsArguments) -> Result<bool> {
    ensure!(arguments.rounds > 0 && arguments.connections > 0, "nothing is asked for");
    let settings = FaultsSettings {
        baton: arguments.baton,
        ways: arguments.ways,
        rounds: arguments.rounds,
        connections: arguments.connections,
        folder: arguments.folder.unwrap_or_else(|| std::env::temp_dir().join("baton-lab-faults")),
    };
    print(&cluster_faults::run(&settings)?)?;
    Ok(true)
}

fn lend_documents(arguments: DocumentsArguments) -> Result<bool> {
    let quick = arguments.quick;
    let servers = arguments.servers.unwrap_or_else(|| if quick { vec![1, 2, 4] } else { vec![1, 2, 4, 6] });
    ensure!(!servers.contains(&0) && arguments.visitors > 0 && arguments.hurry > 0, "nothing is asked for");
    ensure!(arguments.link_mbit > 0, "a link that carries nothing");
    let settings = DocumentsSettings {
        baton: arguments.baton,
        servers,
        visitors: arguments.visitors,
        link_mbit: arguments.link_mbit,
        duration: duration(arguments.seconds.unwrap_or(if quick { 60.0 } else { 120.0 }))?,
        hurry: arguments.hurry,
        folder: arguments.folder.unwrap_or_else(|| std::env::temp_dir().join("baton-lab-documents")),
    };
    print(&documents::run(&settings)?)?;
    Ok(true)
}

fn demonstrate_cluster(arguments: DemoArguments) -> Result<bool> {
    let settings = DemoSettings {
        baton: arguments.baton,
        duration: arguments.seconds.map(duration).transpose()?,
        folder: arguments.folder.unwrap_or_else(demo::usual_folder),
    };
    demo::run(&settings)?;
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
