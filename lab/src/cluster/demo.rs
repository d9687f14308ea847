//! A demonstration: two clusters side by side, one by round robin, one by content, under the same skewed load; what their
//! nodes find in memory is shown every second.

use std::fmt::Write as _;
use std::fs;
use std::io::{IsTerminal, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::content::{Content, TraceKind};
use super::front::Front;
use super::nodes::Nodes;
use super::rack::{EMPTY, PORT, Rack, disk, hosts};
use super::settings::ClusterBounds;
use crate::contender::Contender;
use crate::load::{Load, LoadSettings, RequestList};
use crate::rig::network::{ClusterHosts, Host, Network};
use crate::rig::{Groups, Image, Isolation, Machine, own_folder};
use crate::servers::RunningServer;

/// What to demonstrate, and how long.
#[derive(Clone, Debug)]
pub struct DemoSettings {
    /// The command of this project.
    pub baton: PathBuf,
    /// `None`: until it is interrupted.
    pub duration: Option<Duration>,
    /// Where mount points, configurations and logs are put.
    pub folder: PathBuf,
}

/// A cluster of the demonstration.
struct Side<'a> {
    policy: &'static str,
    rack: Rack<'a>,
    nodes: Nodes,
    front: RunningServer,
}

/// What clients of a side got so far.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    requests: u64,
    /// Of late.
    requests_per_second: f64,
    p99_ms: f64,
}

/// Shows it, and checks every answer.
///
/// # Errors
/// If we are not root, the machine lacks a tool or a control group, or a request was answered wrongly.
pub fn run(settings: &DemoSettings) -> Result<()> {
    if let Some(why) = Network::hindrance() {
        bail!("the demonstration {why}; control groups, loop devices and mounts also need root");
    }
    let folder = own_folder(&settings.folder).with_context(|| settings.folder.display().to_string())?;
    let machine = Machine::prepare(Isolation::Hosts, 1)?;
    let groups = Groups::new()?;
    let both = [hosts(BOUNDS.nodes)?, hosts(BOUNDS.nodes)?];
    let content = Content::make(TraceKind::Zipf(ALPHA), BOUNDS.content_mb);
    let image = disk(&content, &folder)?;
    let folders = POLICIES.map(|policy| folder.join(policy));
    let mut sides = Vec::new();
    for ((policy, hosts), folder) in POLICIES.into_iter().zip(&both).zip(&folders) {
        fs::create_dir_all(folder.join(EMPTY))?;
        let rack = Rack {
            baton: &settings.baton,
            bounds: &BOUNDS,
            machine: &machine,
            groups: &groups,
            hosts,
            folder,
        };
        sides.push(Side::start(policy, rack, &image)?);
    }
    print!("{}", introduction(&sides));
    watch(&sides, &content, settings.duration)?;
    for side in sides {
        drop(side.front);
        side.nodes.stop(side.rack.groups)?;
    }
    Ok(())
}

impl<'a> Side<'a> {
    fn start(policy: &'static str, rack: Rack<'a>, image: &Image) -> Result<Self> {
        let nodes = Nodes::start(&rack, image, BOUNDS.nodes, policy, Contender::Relay)?;
        let front = Front::Ours(policy.to_owned(), Contender::Relay);
        let entry = front.entry(rack.baton, rack.folder, &nodes.addresses())?;
        let front = rack.start_front(&entry)?;
        Ok(Self { policy, rack, nodes, front })
    }

    fn client(&self) -> &Host {
        &self.rack.hosts.client
    }

    /// The socket of the front-end for `baton ctl`.
    fn control(&self) -> PathBuf {
        self.rack.folder.join(self.policy).join("control")
    }
}

fn vip() -> SocketAddr {
    SocketAddr::new(IpAddr::V4(ClusterHosts::VIP_V4), PORT)
}

fn introduction(sides: &[Side<'_>]) -> String {
    let mut text = format!(
        "\nTwo clusters in network namespaces: a front-end and {} nodes each. Each node has {} MiB of memory, a disk of {} MB/s \
         and {:.0} % of a CPU;\nthe site has {} MB, so no node can hold it. Requests follow Zipf's law. One front-end takes \
         nodes in turn ({}), the other knows\nwhich node has what ({}).\n\nLook at \"in memory\": nodes in turn all keep the same \
         files. By content, their memories add up, disks rest, and more is served.\n\nThings to try, from another terminal:\n",
        BOUNDS.nodes,
        BOUNDS.memory_mib,
        BOUNDS.disk_mb_per_s,
        BOUNDS.node_cpus * 100.0,
        BOUNDS.content_mb,
        POLICIES[0],
        POLICIES[1]
    );
    let Some(side) = sides.last() else { return text };
    let curl = in_words(side.client(), "curl");
    let ctl = format!("{} ctl --control {}", side.rack.baton.display(), side.control().display());
    let lines = [
        format!("{curl} -si http://{}/zipf/0 | head -12", ClusterHosts::VIP_V4),
        format!(
            "{curl} -s -o /dev/null -w '%{{http_code}} %{{size_download}} bytes in %{{time_total}} s\\n' http://{}/zipf/[0-9]",
            ClusterHosts::VIP_V4
        ),
        format!("{ctl} cluster                   # the nodes as the front-end sees them"),
        format!("{ctl} cluster why /zipf/0       # which node has that file, and why"),
        format!("{ctl} cluster drain node0       # its load goes to the others; undrain brings it back"),
        // Its processes have a session of their own.
        format!("pkill -STOP -s {}               # a node that hangs; -CONT wakes it", side.nodes.pids()[1]),
    ];
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
    text.push('\n');
    text
}

/// A command on a host as one types it.
fn in_words(host: &Host, program: &str) -> String {
    let command = host.command(program);
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Loads both sides and shows them, until the time is over or an answer is wrong.
fn watch(sides: &[Side<'_>], content: &Content, duration: Option<Duration>) -> Result<()> {
    let over = AtomicBool::new(false);
    let served: Vec<Mutex<Served>> = sides.iter().map(|_| Mutex::default()).collect();
    std::thread::scope(|scope| {
        let loads: Vec<_> = sides
            .iter()
            .zip(&served)
            .map(|(side, served)| scope.spawn(|| load(side.client(), content, served, &over)))
            .collect();
        let shown =
            show(sides, &served, duration, &|| loads.iter().any(std::thread::ScopedJoinHandle::is_finished));
        over.store(true, Ordering::Relaxed);
        for load in loads {
            load.join().map_err(|_| anyhow::anyhow!("a load generator failed"))??;
        }
        shown
    })?;
    for (side, served) in sides.iter().zip(&served) {
        let served = *served.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(served.requests > 0, "{} answered nothing", side.policy);
        println!("{}: {} requests answered, each as it should be", side.policy, served.requests);
    }
    Ok(())
}

/// Asks a front-end for one file after the other. The first wrong answer is an error.
fn load(client: &Host, content: &Content, served: &Mutex<Served>, over: &AtomicBool) -> Result<()> {
    let settings = LoadSettings {
        address: vip(),
        connections: BOUNDS.connections,
        connection_per_request: false,
        idle_connections: 0,
        duration: SLICE,
        requests_max: None,
        requests_per_second: None,
        sleep: true,
        verify: true,
    };
    client.run(|| {
        let mut requests = RequestList::new(settings.address, false, content.requests(0));
        while !over.load(Ordering::Relaxed) {
            let report = Load::connect(&settings, requests.clone())?.run()?;
            requests.skip(report.requests as usize);
            ensure!(report.failed() == 0, "{}", report.first_failure.unwrap_or_default());
            let mut served = served.lock().unwrap_or_else(PoisonError::into_inner);
            served.requests += report.requests;
            let figures = report.figures();
            served.requests_per_second = figures.requests_per_second;
            served.p99_ms = figures.latency_us.p99 / 1e3;
        }
        Ok(())
    })
}

/// Prints a block for each second, over the last one if a terminal shows it.
fn show(
    sides: &[Side<'_>],
    served: &[Mutex<Served>],
    duration: Option<Duration>,
    ended: &dyn Fn() -> bool,
) -> Result<()> {
    let read = || -> Result<Vec<_>> {
        let one = |(side, served): (&Side<'_>, &Mutex<Served>)| {
            let served = *served.lock().unwrap_or_else(PoisonError::into_inner);
            Ok((served, side.nodes.ledger(side.rack.hosts)?))
        };
        sides.iter().zip(served).map(one).collect()
    };
    let start = Instant::now();
    let mut before = (read()?, start);
    let rewrites = std::io::stdout().is_terminal();
    let mut lines = 0;
    while !ended() && duration.is_none_or(|duration| start.elapsed() < duration) {
        std::thread::sleep(SHOWN_EVERY);
        let now = (read()?, Instant::now());
        let seconds = (now.1 - before.1).as_secs_f64();
        let mut text = heading(now.1 - start);
        for (side, ((served, ledger), (_, ledger_before))) in sides.iter().zip(now.0.iter().zip(&before.0)) {
            let done = ledger.since(ledger_before);
            let sent = done.sent_bytes.iter().sum::<u64>().max(1);
            let in_memory = (1.0 - done.disk_bytes as f64 / sent as f64).max(0.0);
            let _ = write!(
                text,
                "{:<12} {:>10.0} {:>9.0} % {:>7.1} {:>8.0}   ",
                side.policy,
                served.requests_per_second,
                in_memory * 100.0,
                done.disk_bytes as f64 / 1e6 / seconds,
                served.p99_ms,
            );
            for sent in &done.sent_bytes {
                let _ = write!(text, " {:>7.1}", *sent as f64 / 1e6 / seconds);
            }
            text.push('\n');
        }
        if rewrites && lines > 0 {
            print!("\x1b[{lines}A\x1b[J");
        }
        lines = text.lines().count();
        print!("{text}");
        std::io::stdout().flush()?;
        before = now;
    }
    Ok(())
}

fn heading(since: Duration) -> String {
    format!("\n{:>4} s        requests/s  in memory  disks   p99 ms    MB/s of each node\n", since.as_secs())
}

/// Round robin, and ours.
const POLICIES: [&str; 2] = ["wrr", "lard-h"];
const ALPHA: f64 = 0.9;
const BOUNDS: ClusterBounds = ClusterBounds {
    nodes: 3,
    node_cpus: 0.05,
    memory_mib: 24,
    disk_mb_per_s: 3.0,
    read_ahead_kb: 128,
    content_mb: 36,
    connections: 48,
};
/// After so long a load is counted, and begins anew.
const SLICE: Duration = Duration::from_millis(500);
const SHOWN_EVERY: Duration = Duration::from_secs(1);

/// Where the demonstration puts its files unless told otherwise.
#[must_use]
pub fn usual_folder() -> PathBuf {
    Path::new(&std::env::temp_dir()).join("baton-demo-cluster")
}
