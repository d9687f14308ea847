//! A demonstration: two clusters side by side, one by round robin, one by content, under the same skewed load; what their
//! nodes find in memory is shown every second.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _, stdout};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use super::cluster::Cluster;
use super::effort::Effort;
use super::loads::Attempt;
use super::site::Site;
use super::stage::{Contestant, Stage};
use super::turn::Turn;
use crate::experiment::{ClosedText, Experiment, LoadText};
use crate::quantity::Quantity;
use crate::rig::network::Host;
use crate::servers::SettingTable;

/// A cluster of the demonstration.
struct Side {
    policy: String,
    contestant: Contestant,
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
    let stage = Stage::prepare(&experiment, folder, site, baton, SettingTable::new())?;
    let load = &experiment.loads[0];
    let LoadText::Closed(asked) = &load.what else {
        return Err(anyhow!("the demonstration is a closed loop"));
    };
    let mut sides = Vec::new();
    for contender in &experiment.contenders {
        let contestant = stage.start(contender, &[load]);
        let contestant = contestant.map_err(|outcome| anyhow!("{}: {outcome}", contender.name))?;
        sides.push(Side { policy: contender.name.clone(), contestant });
    }
    let requests = stage.site.requests(&asked.ask, 0)?;
    print!("{}", introduction(&sides, &stage, requests.first().map_or("/", |request| &request.path))?);
    watch(&stage, &sides, asked, duration)?;
    sides.into_iter().try_for_each(|side| stage.stop(side.contestant))
}

impl Side {
    fn cluster(&self) -> Result<&Cluster> {
        self.contestant.cluster.as_ref().context("the contender has no nodes")
    }

    /// Loads it for a while: the requests that were answered, and a line about them.
    fn turn(&self, stage: &Stage, load: &ClosedText, turn: Turn) -> Result<(f64, String)> {
        let cluster = self.cluster()?;
        let (begin, before) = (Instant::now(), cluster.ledger()?);
        let (values, _) = Attempt { stage, contestant: &self.contestant, turn }.closed(load)?;
        let done = cluster.ledger()?.since(&before);
        let seconds = begin.elapsed().as_secs_f64();
        let value = |quantity| values.get(&quantity).copied().unwrap_or_default();
        let sent = done.sent_bytes.iter().sum::<u64>().max(1);
        let in_memory = (1.0 - done.disk_bytes as f64 / sent as f64).max(0.0);
        let rate = value(Quantity::Rate);
        let mut line = format!(
            "{:<12} {rate:>10.0} {:>9.0} % {:>7.1} {:>8.0}   ",
            self.policy,
            in_memory * 100.0,
            done.disk_bytes as f64 / 1e6 / seconds,
            value(Quantity::P99Us) / 1e3,
        );
        for sent in &done.sent_bytes {
            let _ = write!(line, " {:>7.1}", *sent as f64 / 1e6 / seconds);
        }
        Ok((rate * turn.duration.as_secs_f64(), line + "\n"))
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

/// Loads both sides and shows them, over the last time if a terminal does, until the time is over or an answer is wrong.
fn watch(stage: &Stage, sides: &[Side], load: &ClosedText, duration: Option<Duration>) -> Result<()> {
    let start = Instant::now();
    let (rewrites, mut lines) = (stdout().is_terminal(), 0);
    let mut answered = vec![0.0; sides.len()];
    for number in 0.. {
        if duration.is_some_and(|duration| start.elapsed() >= duration) {
            break;
        }
        let turn = Turn { number, place: 0.0, duration: SHOWN_EVERY, is_first: false, effort: Effort::Full };
        let turns = thread::scope(|scope| {
            let running = sides.iter().map(|side| scope.spawn(move || side.turn(stage, load, turn)));
            let running: Vec<_> = running.collect();
            running.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()
        });
        let mut text = heading(start.elapsed());
        for (sum, turn) in answered.iter_mut().zip(turns) {
            let (requests, line) = turn.map_err(|_| anyhow!("a load generator failed"))??;
            *sum += requests;
            text += &line;
        }
        if rewrites && lines > 0 {
            print!("\x1b[{lines}A\x1b[J");
        }
        lines = text.lines().count();
        print!("{text}");
        stdout().flush()?;
    }
    for (side, answered) in sides.iter().zip(answered) {
        ensure!(answered > 0.0, "{} answered nothing", side.policy);
        println!("{}: {answered:.0} requests answered, each as it should be", side.policy);
    }
    Ok(())
}

fn heading(since: Duration) -> String {
    format!("\n{:>4} s        requests/s  in memory  disks   p99 ms    MB/s of each node\n", since.as_secs())
}

const SHOWN_EVERY: Duration = Duration::from_secs(1);
