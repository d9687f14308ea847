//! `baton top`: what a running server does, second by second, on a terminal.

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use baton_master::control::{self, Command};
use baton_report::counted_as;
use clap::{Args, ValueHint};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;

use super::figures::{Traffic, duration, rate, short, traffic};
use super::output::{Failure, print};
use super::pools;
use super::status::{elements, plain, table};
use super::status_summary::{age, architecture, cut};

/// Watch a running server: rates, latencies, statuses, workers, applications, origins and cluster, each second
///
/// `q` and Enter, or Ctrl-C, end it.
#[derive(Debug, Args)]
pub(super) struct Top {
    /// Print one frame, of one second, and end; so it does where the output is no terminal
    #[arg(long)]
    once: bool,

    /// Control socket [default: that of the only server that this user runs]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, env = "BATON_CONTROL")]
    control: Option<PathBuf>,
}

/// From one frame to the next.
const INTERVAL: Duration = Duration::from_secs(1);

impl Top {
    /// Shows frames until the user ends it, or the server ends.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let path = self.control.clone().map_or_else(control::find, Ok)?;
        let look = || -> Result<(Value, Instant), Failure> {
            let answer = control::request(&path, Command::Status)?;
            Ok((serde_json::from_str(&answer)?, Instant::now()))
        };
        let is_live = !self.once && std::io::stdout().is_terminal();
        let mut before = look()?;
        loop {
            if is_to_end(is_live) {
                return Ok(ExitCode::SUCCESS);
            }
            let now = look()?;
            let elapsed_ms = now.1.duration_since(before.1).as_millis();
            let frame = frame(&now.0, &before.0, u64::try_from(elapsed_ms).unwrap_or(u64::MAX));
            if !is_live {
                return print(&frame);
            }
            show(&frame)?;
            before = now;
        }
    }
}

/// Waits for the next frame. Returns whether the user has asked for the end.
fn is_to_end(is_live: bool) -> bool {
    let stdin = std::io::stdin();
    let deadline = Instant::now() + INTERVAL;
    let mut listens = is_live && stdin.is_terminal();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).ok();
        let source = PollFd::new(&stdin, if listens { PollFlags::IN } else { PollFlags::empty() });
        let mut sources = [source];
        // A standard input that is closed reports that at once, and is not asked for.
        match poll(if listens { &mut sources } else { &mut [] }, timeout.as_ref()) {
            Ok(0) => return false,
            Ok(_) => {
                let mut typed = [0; 64];
                match stdin.lock().read(&mut typed) {
                    Ok(count) if typed[..count].contains(&b'q') => return true,
                    Ok(0) | Err(_) => listens = false,
                    Ok(_) => {}
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Draws over the frame before, without flicker: each line to its end, then what is left below.
fn show(frame: &str) -> Result<(), Failure> {
    let lines = frame.lines().enumerate();
    let drawn: String = lines
        .map(|(at, line)| match at {
            0 => format!("\x1b[1m{line}\x1b[0m\x1b[K\n"),
            _ => format!("{line}\x1b[K\n"),
        })
        .collect();
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\x1b[H{drawn}\x1b[J").as_bytes())?;
    Ok(out.flush()?)
}

/// What happened between two statuses.
fn frame(now: &Value, before: &Value, elapsed_ms: u64) -> String {
    // A successor counts from 0.
    let before = if now["pid"] == before["pid"] { before } else { now };
    let (sites, upstreams) = (traffic(now, Some(before), "sites"), traffic(now, Some(before), "upstreams"));
    let all = Traffic::sum(&sites);
    let workers = elements(&now["workers"]);
    let sum = |key: &str| workers.iter().filter_map(|one| one[key].as_u64()).sum::<u64>();
    let counted = |key: &str, one: &str| counted_as(short(sum(key)), sum(key), one);
    let [half, nearly_all] = [500, 990].map(|per_mille| duration(all.quantile_us(per_mille)));
    let [ok, moved, client, server] = all.classes.map(|count| rate(count, elapsed_ms));
    let mut lines = vec![
        format!(
            "baton {}  {}  up {}  {}",
            plain(&now["version"]),
            plain(&now["state"]),
            age(now["uptime_seconds"].as_u64().unwrap_or(0)),
            architecture(now),
        ),
        format!(
            "{} req/s  p50 {half}  p99 {nearly_all}  2xx {ok}  3xx {moved}  4xx {client}  5xx {server} per s",
            rate(all.requests, elapsed_ms),
        ),
        format!(
            "{} in flight  {}  {} B/s  {} since the start",
            all.in_flight,
            counted("connections_open", "connection"),
            rate(all.body_bytes, elapsed_ms),
            counted("requests", "request"),
        ),
    ];
    let mut add = |rows: &[Value], columns: &[(&str, &str)]| {
        if !rows.is_empty() {
            lines.push(String::new());
            lines.extend(table(&rows[..rows.len().min(ROWS_MAX)], columns).lines().map(str::to_owned));
            if rows.len() > ROWS_MAX {
                lines.push(format!("and {} more", rows.len() - ROWS_MAX));
            }
        }
    };
    add(&flows(&sites, elapsed_ms), &columns_of("site"));
    add(&flows(&upstreams, elapsed_ms), &columns_of("upstream"));
    add(&worker_rows(workers, before, elapsed_ms), &WORKERS);
    add(&pools::rows(now), &POOLS);
    add(elements(&now["origins"]), &ORIGINS);
    add(elements(&now["cluster"]["nodes"]), &NODES);
    lines.iter().map(|line| cut(line) + "\n").collect()
}

fn flows(all: &[Traffic], elapsed_ms: u64) -> Vec<Value> {
    // The busiest ones first: there may be more than there is room for.
    let mut all: Vec<&Traffic> = all.iter().collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.requests));
    let row = |one: &&Traffic| {
        let per_s = |count| rate(count, elapsed_ms);
        serde_json::json!({
            "name": one.name.chars().take(NAME_CHARACTERS_MAX).collect::<String>(),
            "requests": per_s(one.requests),
            "p50": duration(one.quantile_us(500)),
            "p99": duration(one.quantile_us(990)),
            "2xx": per_s(one.classes[0]),
            "3xx": per_s(one.classes[1]),
            "4xx": per_s(one.classes[2]),
            "5xx": per_s(one.classes[3]),
            "in_flight": one.in_flight,
            "bytes": per_s(one.body_bytes),
        })
    };
    all.iter().map(row).collect()
}

fn worker_rows(workers: &[Value], before: &Value, elapsed_ms: u64) -> Vec<Value> {
    let former = |worker: &Value| {
        elements(&before["workers"]).iter().find(|one| one["index"] == worker["index"]).cloned()
    };
    let row = |worker: &Value| {
        let mut row = worker.clone();
        let number = |worker: &Value| worker["requests"].as_u64().unwrap_or(0);
        let since = number(worker).saturating_sub(former(worker).as_ref().map_or(0, number));
        row["rate"] = rate(since, elapsed_ms).into();
        row["state"] = match (worker["serves"] == true, worker["stands_still"] == true) {
            (_, true) => "STUCK",
            (true, _) => "serves",
            (false, _) => "down",
        }
        .into();
        row
    };
    workers.iter().map(row).collect()
}

fn columns_of(head: &'static str) -> [(&'static str, &'static str); 10] {
    [
        (head, "name"),
        ("req/s", "requests"),
        ("p50", "p50"),
        ("p99", "p99"),
        ("2xx", "2xx"),
        ("3xx", "3xx"),
        ("4xx", "4xx"),
        ("5xx", "5xx"),
        ("flying", "in_flight"),
        ("B/s", "bytes"),
    ]
}

const WORKERS: [(&str, &str); 7] = [
    ("worker", "index"),
    ("pid", "pid"),
    ("cpu", "cpu"),
    ("state", "state"),
    ("open", "connections_open"),
    ("req/s", "rate"),
    ("restarts", "restarts"),
];
const POOLS: [(&str, &str); 8] = [
    ("application", "name"),
    ("processes", "processes"),
    ("idle", "idle"),
    ("busy", "busy"),
    ("waiting", "waiting"),
    ("failures", "failures"),
    ("transport", "transport"),
    ("answers", "answers"),
];
const ORIGINS: [(&str, &str); 5] = [
    ("origin", "origin"),
    ("state", "state"),
    ("in flight", "in_flight"),
    ("requests", "requests"),
    ("failures", "failures"),
];
const NODES: [(&str, &str); 6] = [
    ("node", "name"),
    ("state", "state"),
    ("weight", "weight"),
    ("load", "load"),
    ("requests", "requests"),
    ("failures", "failures"),
];

/// Rows of a table: the metrics have the rest.
const ROWS_MAX: usize = 8;

/// Characters of a name, so that a line has room for the figures.
const NAME_CHARACTERS_MAX: usize = 24;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(requests: u64, code: &str) -> Value {
        let subject = |name: &str| {
            json!({ "name": name, "requests": requests, "in_flight": 2, "body_bytes": requests * 1000,
            "buckets": [requests, 0], "codes": { code: requests } })
        };
        json!({
            "version": "1", "state": "serving", "pid": 7, "uptime_seconds": 65, "architecture": "sped",
            "figures": { "bounds_us": [100], "sites": [subject("quiet"), subject("a-site-with-a-name-that-is-too-long")], "upstreams": [subject("http://o")] },
            "workers": [{ "index": 0, "pid": 8, "cpu": null, "serves": true, "connections_open": 3, "requests": requests, "restarts": 1, "engine": {} }],
            "origins": [{ "origin": "http://o", "state": "drained", "in_flight": 1, "requests": 5, "failures": 0 }],
            "cluster": { "nodes": [{ "name": "n", "state": "up", "weight": 1, "load": 2, "requests": 3, "failures": 4 }] },
        })
    }

    #[test]
    fn a_frame_says_how_answers_travel() {
        let mut now = status(300, "200");
        now["workers"][0]["engine"]["applications"] = json!([{ "address": "unix:/a", "transport": "passfd", "answers": { "passfd": 3, "declined-compression": 1 } }]);
        let frame = frame(&now, &status(100, "200"), 1_000);
        assert!(frame.contains("passfd 75 %, "), "{frame}");
    }

    #[test]
    fn a_frame_says_what_happened_in_between() {
        let frame = frame(&status(300, "200"), &status(100, "200"), 2_000);
        for part in [
            "baton 1  serving  up 1 min 5 s  sped\n",
            "\n200 req/s  p50 50us  p99 99us  2xx 200  3xx 0  4xx 0  5xx 0 per s\n",
            "\n4 in flight  3 connections  200k B/s  300 requests since the start\n",
            "\nhttp://o    100  50us  99us  100    0    0    0       2  100k\n",
            "\na-site-with-a-name-that-",
            "drained",
        ] {
            assert!(frame.contains(part), "{part:?} in\n{frame}");
        }
        assert!(frame.lines().all(|line| line.chars().count() <= 80), "{frame}");
        assert!(
            frame.lines().any(|line| line.split_whitespace().eq(["n", "up", "1", "2", "3", "4"])),
            "{frame}"
        );
    }

    /// Numbers of another server are no numbers to compare with.
    #[test]
    fn an_upgrade_in_between_is_no_flood() {
        let mut former = status(100, "200");
        former["pid"] = 6.into();
        assert!(frame(&status(900, "200"), &former, 1_000).contains("\n0 req/s  p50 -  p99 -"));
    }
}
