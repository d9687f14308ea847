//! A demonstration: two clusters side by side, one by round robin, one by content, under the same skewed load; what their
//! nodes find in memory is shown every second.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use super::cluster::Cluster;
use super::site::Site;
use super::stage::{Contestant, Stage};
use crate::experiment::{Experiment, LoadText};
use crate::load::{Load, LoadRequest, LoadSettings};
use crate::rig::network::Host;

/// A cluster of the demonstration.
struct Side {
    policy: String,
    contestant: Contestant,
    served: Mutex<Served>,
}

/// What clients of a side got so far.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    requests: u64,
    /// Of late.
    requests_per_second: f64,
    p99_ms: f64,
}

/// Shows it, until it is interrupted unless it has a duration, and checks every answer.
///
/// # Errors
/// If we are not root, the machine lacks a tool or a control group, or a request was answered wrongly.
pub fn run(baton: &Path, folder: &Path, duration: Option<Duration>) -> Result<()> {
    let experiment = Experiment::parse("demo", "demo.toml", include_str!("demo.toml"))?;
    if let Some(why) = experiment.hindrance() {
        return Err(anyhow!("the demonstration: {why}"));
    }
    let site = Site::new(&experiment.head.site, false)?;
    let stage = Stage::prepare(&experiment, folder, site, baton, Default::default())?;
    let load = &experiment.loads[0];
    let LoadText::Closed(asked) = &load.what else {
        return Err(anyhow!("the demonstration is a closed loop"));
    };
    let requests = stage.site.requests(&asked.ask, 0)?;
    let mut sides = Vec::new();
    for contender in &experiment.contenders {
        let contestant = stage.start(contender, &[load]);
        let contestant = contestant.map_err(|outcome| anyhow!("{}: {outcome}", contender.name))?;
        sides.push(Side { policy: contender.name.clone(), contestant, served: Mutex::default() });
    }
    let first = requests.first().map_or("/", |request| &request.path);
    print!("{}", introduction(&sides, &stage, first)?);
    watch(&sides, asked.connections, &requests, duration)?;
    sides.into_iter().try_for_each(|side| stage.stop(side.contestant))
}

impl Side {
    fn cluster(&self) -> Result<&Cluster> {
        self.contestant.cluster.as_ref().context("the contender has no nodes")
    }

    fn served(&self) -> MutexGuard<'_, Served> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `path`: of a file.
fn introduction(sides: &[Side], stage: &Stage, path: &str) -> Result<String> {
    let [in_turn, side] = sides else { return Err(anyhow!("the demonstration has two sides")) };
    let cluster = side.cluster()?;
    let mut text = format!(
        "\nTwo clusters in network namespaces: a front-end and {} nodes each. Memory, disk and CPU of each node are bounded;\n\
         the site has {} MB, so no node can hold it. Requests are those of a university's servers. One front-end takes nodes in\n\
         turn ({}), the other knows which node has what ({}).\n\nLook at \"in memory\": nodes in turn all keep the same \
         files. By content, their memories add up, disks rest, and more is served.\n\nThings to try, from another terminal:\n",
        cluster.nodes.len(),
        stage.site.bytes() / 1_000_000,
        in_turn.policy,
        side.policy
    );
    let server = &side.contestant.server;
    let curl = in_words(&cluster.hosts.client, "curl");
    let ctl = format!("{} ctl --control {}", stage.baton.display(), server.folder.join("control").display());
    let lines = [
        format!("{curl} -si http://{}{path} | head -12", server.address.ip()),
        format!("{ctl} cluster                   # the nodes as the front-end sees them"),
        format!("{ctl} cluster why {path}  # which node has that file, and why"),
        format!("{ctl} cluster drain node0       # its load goes to the others; undrain brings it back"),
        // Its processes have a session of their own.
        format!(
            "pkill -STOP -s {}               # a node that hangs; -CONT wakes it",
            cluster.nodes[1].server.pid()
        ),
    ];
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
    text.push('\n');
    Ok(text)
}

/// A command on a host as one types it.
fn in_words(host: &Host, program: &str) -> String {
    let command = host.command(program);
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// Loads both sides and shows them, until the time is over or an answer is wrong.
fn watch(
    sides: &[Side],
    connections: usize,
    requests: &[LoadRequest],
    duration: Option<Duration>,
) -> Result<()> {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut loads = Vec::new();
        for side in sides {
            let hosts = &side.cluster()?.hosts;
            let settings = LoadSettings {
                connections,
                sleep: true,
                verify: true,
                ..LoadSettings::new(side.contestant.server.address, SLICE)
            };
            let over = &over;
            loads.push(scope.spawn(move || hosts.client.run(|| load(&settings, requests, side, over))));
        }
        let shown = show(sides, duration, &|| loads.iter().any(std::thread::ScopedJoinHandle::is_finished));
        over.store(true, Ordering::Relaxed);
        for load in loads {
            load.join().map_err(|_| anyhow!("a load generator failed"))??;
        }
        shown
    })?;
    for side in sides {
        let served = *side.served();
        ensure!(served.requests > 0, "{} answered nothing", side.policy);
        println!("{}: {} requests answered, each as it should be", side.policy, served.requests);
    }
    Ok(())
}

/// Asks a front-end for one file after the other. The first wrong answer is an error.
fn load(settings: &LoadSettings, requests: &[LoadRequest], side: &Side, over: &AtomicBool) -> Result<()> {
    let mut begin = 0;
    while !over.load(Ordering::Relaxed) {
        let all = requests.iter().cycle().skip(begin).take(requests.len()).cloned();
        let report = Load::connect(settings, all)?.run()?;
        begin = (begin + report.requests as usize) % requests.len();
        ensure!(report.failed() == 0, "{}", report.first_failure.unwrap_or_default());
        let mut served = side.served();
        served.requests += report.requests;
        served.requests_per_second = report.rate();
        served.p99_ms = report.latencies.us(0.99) / 1e3;
    }
    Ok(())
}

/// Prints a block for each second, over the last one if a terminal shows it.
fn show(sides: &[Side], duration: Option<Duration>, ended: &dyn Fn() -> bool) -> Result<()> {
    let read = || -> Result<Vec<_>> {
        sides.iter().map(|side| Ok((*side.served(), side.cluster()?.ledger()?))).collect()
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

/// After so long a load is counted, and begins anew.
const SLICE: Duration = Duration::from_millis(500);
const SHOWN_EVERY: Duration = Duration::from_secs(1);
