//! Access logs as load: their clients' visits become sessions.
//!
//! Two uses: a site of files as large as the log's answers ([`make`]), and a replay against the site itself, of which only
//! the log is known ([`replay`]).

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use baton_sim::trace::{CHESS, IBM, LogEntry, LogLines, Method, RICE, synthesize};
use serde::{Deserialize, Serialize};

use super::model::{LoadSite, SiteFile};
use super::random::SplitMix64;
use super::statistics::{MIB, Statistic};
use super::thinking::cut_into_sessions;
use crate::script::{Script, ScriptStep};
use crate::targets::LoadRequest;

/// A log as sessions.
#[derive(Debug)]
pub struct ReplayedLog {
    /// The sessions.
    pub script: Script,
    /// Requests per second over the log, from the first to the last.
    pub requests_per_second: f64,
    /// What was read and what was left out, in sentences.
    pub words: Vec<String>,
}

/// Replays `GET` requests of these logs in the order of time, as its clients made them: a client that is silent for half a
/// minute begins another session. `HEAD` is replayed as `GET`.
///
/// # Errors
/// If a log cannot be read, or has no such request.
pub fn replay(logs: &[PathBuf]) -> Result<ReplayedLog> {
    let read = Visits::read(logs, |entry| entry.status < 500)?;
    let targets = read.targets.iter().map(|(target, _)| LoadRequest::replay(target.clone())).collect();
    let span_s = match (read.visits.first(), read.visits.last()) {
        (Some(first), Some(last)) => (last.time_s - first.time_s + 1) as f64,
        _ => 1.0,
    };
    let requests_per_second = read.visits.len() as f64 / span_s;
    let script = into_sessions(targets, read.visits);
    Ok(ReplayedLog { script, requests_per_second, words: read.words })
}

/// A site with a file for each target of a log, as large as its largest answer.
pub(super) fn make(log: &Path, set_mib: Option<f64>) -> Result<LoadSite> {
    let mut read = Visits::read(&[log.to_owned()], |entry| matches!(entry.status, 200..=299 | 304))?;
    let sizes: Vec<u64> = read.targets.iter().map(|(_, bytes)| *bytes).collect();
    let count = prefix(read.visits.iter().map(|visit| visit.request), &sizes, set_mib);
    read.visits.truncate(count);
    let (files, targets) = listed("log", &sizes, read.visits.iter().map(|visit| visit.request));
    let script = into_sessions(targets, read.visits);
    Ok(LoadSite::new(log.display().to_string(), files, script))
}

/// A site with the files of a log of which only statistics are printed; smaller files have `bytes_min`.
pub(super) fn published(log: PublishedLog, set_mib: Option<f64>, bytes_min: u64, seed: u64) -> LoadSite {
    let printed = match log {
        PublishedLog::Rice => &RICE,
        PublishedLog::Ibm => &IBM,
        PublishedLog::Chess => &CHESS,
    };
    let (trace, fit) = synthesize(printed, printed.requests_default, seed);
    let sizes: Vec<u64> = trace.targets().iter().map(|target| target.bytes.max(bytes_min)).collect();
    let order = || trace.requests().iter().map(|request| request.target());
    let count = prefix(order(), &sizes, set_mib);
    let (files, targets) = listed(printed.name, &sizes, order().take(count));
    let mut script = Script::new(targets);
    cut_into_sessions(&mut script, order().take(count), &mut SplitMix64(seed));
    let whole =
        fit.points.into_iter().map(|point| Statistic::new(point.what, Some(point.published), point.ours));
    let whole = whole.filter(|_| set_mib.is_none() && bytes_min == 0).collect();
    LoadSite::new(format!("the log {}", printed.name), files, script).with(whole)
}

/// A log of which statistics are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublishedLog {
    /// Seven servers of a university.
    Rice,
    /// A large company.
    Ibm,
    /// A chess match.
    Chess,
}

/// One request of a log.
#[derive(Clone, Copy, Debug)]
struct Visit {
    time_s: i64,
    /// A hash of the client.
    client: u64,
    request: u32,
}

/// The requests of logs, in the order of time.
struct Visits {
    visits: Vec<Visit>,
    /// Each target with its largest answer.
    targets: Vec<(String, u64)>,
    words: Vec<String>,
}

impl Visits {
    fn read(logs: &[PathBuf], wanted: impl Fn(&LogEntry<'_>) -> bool) -> Result<Self> {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut targets: Vec<(String, u64)> = Vec::new();
        let mut visits = Vec::new();
        let mut left_out = 0_u64;
        let mut take = |entry: &LogEntry<'_>| {
            let target = origin_form(&entry.target);
            let (Some(target), Method::Get | Method::Head, true) = (target, entry.method, wanted(entry))
            else {
                left_out += 1;
                return;
            };
            let number = *numbers.entry(target).or_insert_with_key(|target| {
                targets.push((target.clone(), 0));
                targets.len() as u32 - 1
            });
            let largest = &mut targets[number as usize].1;
            *largest = (*largest).max(entry.bytes);
            let client = hasher.hash_one(&entry.client);
            visits.push(Visit { time_s: entry.time_s, client, request: number });
        };
        let mut lines = LogLines::default();
        for log in logs {
            lines.read_path(log, &mut take).map_err(|error| anyhow::anyhow!("{error}"))?;
        }
        let names: Vec<String> = logs.iter().map(|log| log.display().to_string()).collect();
        ensure!(
            !visits.is_empty(),
            "{} has no request to replay: {} lines, {} of them bad, {left_out} left out",
            names.join(", "),
            lines.summary().lines,
            lines.summary().bad_lines()
        );
        visits.sort_by_key(|visit| visit.time_s);
        let mut words = vec![format!(
            "Read {} lines: {} requests for {} targets; {left_out} left out by their method, status or target.",
            lines.summary().lines,
            visits.len(),
            targets.len()
        )];
        words.extend(lines.summary().complaints());
        Ok(Self { visits, targets, words })
    }
}

/// Path and query of a target, if it can be sent as it is.
fn origin_form(target: &[u8]) -> Option<String> {
    let target = std::str::from_utf8(target).ok()?;
    let is_sent = target.starts_with('/') && target.bytes().all(|byte| byte.is_ascii_graphic());
    is_sent.then(|| target.to_owned())
}

/// How many of the requests there are until the files of all of them exceed a size.
fn prefix(order: impl Iterator<Item = u32>, sizes: &[u64], set_mib: Option<f64>) -> usize {
    let Some(set_mib) = set_mib else { return order.count() };
    let (mut seen, mut set) = (vec![false; sizes.len()], 0);
    let is_within = |request: &u32| {
        let number = *request as usize;
        if !std::mem::replace(&mut seen[number], true) {
            set += sizes[number];
        }
        set as f64 <= set_mib * MIB
    };
    order.take_while(is_within).count()
}

/// A file for each request that is made, and how it is asked for. The others have a place, and no file.
fn listed(
    folder: &str,
    sizes: &[u64],
    order: impl Iterator<Item = u32>,
) -> (Vec<SiteFile>, Vec<LoadRequest>) {
    let mut made = vec![false; sizes.len()];
    order.for_each(|request| made[request as usize] = true);
    let path = |number: usize| format!("/{folder}/{:03}/{number}", number / FILES_OF_A_FOLDER);
    let files = sizes.iter().enumerate().filter(|(number, _)| made[*number]);
    (
        files.map(|(number, bytes)| SiteFile::text(path(number), *bytes)).collect(),
        sizes.iter().enumerate().map(|(number, bytes)| LoadRequest::file(path(number), *bytes)).collect(),
    )
}

/// The visits of each client, cut where it was silent; sessions in the order of their beginnings.
fn into_sessions(targets: Vec<LoadRequest>, mut visits: Vec<Visit>) -> Script {
    visits.sort_by_key(|visit| (visit.client, visit.time_s));
    let same = |one: &Visit, next: &Visit| one.client == next.client && next.time_s - one.time_s < SILENCE_S;
    let mut sessions: Vec<&[Visit]> = visits.chunk_by(same).collect();
    sessions.sort_by_key(|session| session[0].time_s);
    let mut script = Script::new(targets);
    for session in sessions {
        let mut before = session[0].time_s;
        script.push(session.iter().map(|visit| {
            let pause_ms = ((visit.time_s - before) * 1000) as u32;
            before = visit.time_s;
            ScriptStep { request: visit.request, pause_ms }
        }));
    }
    script
}

/// A client that was silent for so long comes again on another connection.
const SILENCE_S: i64 = 30;
const FILES_OF_A_FOLDER: usize = 1000;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    fn line(client: &str, second: u32, target: &str, status: u16, bytes: u64) -> String {
        let (minute, second) = (second / 60, second % 60);
        format!(
            "{client} - - [10/Oct/2000:13:{minute:02}:{second:02} +0000] \"GET {target} HTTP/1.1\" {status} {bytes}\n"
        )
    }

    fn log() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let text = [
            line("a", 0, "/", 200, 1 << 20),
            line("b", 1, "/big?x=1", 200, 3 << 20),
            line("a", 2, "/style.css", 304, 0),
            line("a", 3, "/gone", 404, 9),
            line("b", 40, "/", 200, 1 << 20),
            line("b", 40, "/broken", 502, 9),
            "nothing\n".to_owned(),
        ];
        fs::write(&path, text.concat()).unwrap();
        (folder, path)
    }

    fn asked(script: &Script) -> Vec<Vec<(String, Duration)>> {
        let step = |step: &ScriptStep| (script.requests()[step.request as usize].path.clone(), step.pause());
        (0..script.session_count()).map(|number| script.session(number).iter().map(step).collect()).collect()
    }

    #[test]
    fn clients_come_again_as_they_did() {
        let (_folder, log) = log();
        let replayed = replay(&[log]).unwrap();
        let seconds = Duration::from_secs;
        let expected = [
            vec![
                ("/".to_owned(), seconds(0)),
                ("/style.css".into(), seconds(2)),
                ("/gone".into(), seconds(1)),
            ],
            vec![("/big?x=1".into(), seconds(0))],
            vec![("/".into(), seconds(0))],
        ];
        assert_eq!(asked(&replayed.script), expected);
        assert!((replayed.requests_per_second - 5.0 / 41.0).abs() < 1e-9);
        assert!(
            replayed.words.iter().any(|words| words.contains("Skipped 1 bad line")),
            "{:?}",
            replayed.words
        );
    }

    #[test]
    fn a_site_has_files_as_large_as_the_answers_up_to_a_set() {
        let (_folder, log) = log();
        let whole = make(&log, None).unwrap();
        assert_eq!((whole.files.len(), whole.bytes()), (3, 4 << 20));
        let part = make(&log, Some(2.0)).unwrap();
        assert_eq!((part.bytes(), part.script.steps().len()), (1 << 20, 1));
    }

    #[test]
    fn a_log_without_requests_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("empty.log");
        fs::write(&log, "nothing\n").unwrap();
        let error = replay(&[log]).unwrap_err().to_string();
        assert!(error.contains("empty.log has no request to replay: 1 lines, 1 of them bad"), "{error}");
        assert!(replay(&[folder.path().join("none")]).unwrap_err().to_string().contains("none"));
    }

    #[test]
    fn a_published_log_can_be_cut_to_a_set() {
        let site = published(PublishedLog::Chess, Some(10.0), 0, 1);
        assert!(site.bytes() as f64 <= 10.0 * MIB && site.bytes() as f64 > 5.0 * MIB, "{site}");
        assert_eq!(site.statistics.iter().filter(|statistic| statistic.published.is_some()).count(), 0);
        let large = published(PublishedLog::Chess, Some(10.0), 100 << 10, 1);
        assert!(large.bytes() >= large.files.len() as u64 * (100 << 10));
        assert!(large.files.len() < site.files.len());
        let whole = published(PublishedLog::Chess, None, 0, 1);
        assert!(whole.statistics.iter().any(|statistic| statistic.published.is_some()));
    }
}
