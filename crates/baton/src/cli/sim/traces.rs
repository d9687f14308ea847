//! Where traces come from: logs that are read, or a built-in trace that is made.

use std::path::{Path, PathBuf};

use baton_sim::caching::Workload;
use baton_sim::documents::{DocumentSite, site_of_log};
use baton_sim::trace::{CHESS, IBM, LogReader, LogStatistics, LogSummary, RICE, Trace, Zipf, synthesize};

use super::super::output::Failure;

/// The trace of the arguments: a built-in one if that is what they name, else what the logs tell.
pub(super) fn make_or_read(traces: &[PathBuf], seed: u64) -> Result<(Trace, Option<LogSummary>), Failure> {
    if let Some(built_in) = BuiltIn::named(traces) {
        return Ok((built_in.make(seed)?, None));
    }
    let (trace, summary) = read_logs(traces)?;
    Ok((trace, Some(summary)))
}

/// A trace that is made, not read.
pub(super) enum BuiltIn<'a> {
    /// From published statistics.
    Published(&'static LogStatistics),
    /// By Zipf's law, with these parameters.
    Zipf(&'a str),
}

impl<'a> BuiltIn<'a> {
    /// The built-in trace that is named, if it is no log.
    pub(super) fn named(traces: &'a [PathBuf]) -> Option<Self> {
        let [only] = traces else { return None };
        let name = only.to_str()?;
        let published = [&RICE, &IBM, &CHESS].into_iter().find(|published| published.name == name);
        published
            .map(BuiltIn::Published)
            .or_else(|| name.strip_prefix("zipf").map(|rest| BuiltIn::Zipf(rest.trim_start_matches(':'))))
    }

    pub(super) fn make(&self, seed: u64) -> Result<Trace, Failure> {
        match self {
            Self::Published(published) => Ok(synthesize(published, published.requests_default, seed).0),
            Self::Zipf(parameters) => Ok(parameters.parse::<Zipf>()?.trace(seed)),
        }
    }
}

/// Reads logs; an error if no request is in them.
pub(super) fn read_logs(paths: &[PathBuf]) -> Result<(Trace, LogSummary), Failure> {
    replayable(read_all(LogReader::default(), paths)?, paths)
}

/// Reads logs, who got which bytes included; an error if no request is in them.
pub(super) fn read_sessions(paths: &[PathBuf]) -> Result<(Workload, LogSummary), Failure> {
    let mut reader = read_all(LogReader::with_reads(), paths)?;
    let reads = reader.reads();
    let (trace, summary) = replayable(reader, paths)?;
    Ok((Workload::of_log(&trace, reads), summary))
}

fn read_all(mut reader: LogReader, paths: &[PathBuf]) -> Result<LogReader, Failure> {
    for path in paths {
        reader.read_path(path)?;
    }
    Ok(reader)
}

fn replayable(reader: LogReader, paths: &[PathBuf]) -> Result<(Trace, LogSummary), Failure> {
    let (trace, summary) = reader.finish(&name_of(paths));
    if trace.requests().is_empty() {
        return Err(Failure(format!("no request to replay. {}", summary.words().join("\n"))));
    }
    Ok((trace, summary))
}

/// Reads logs, who sent clients where included; an error if no walk can begin.
pub(super) fn read_site(paths: &[PathBuf]) -> Result<(DocumentSite, LogSummary), Failure> {
    let mut reader = read_all(LogReader::with_referrals(), paths)?;
    let referrals = reader.referrals();
    let (trace, summary) = reader.finish(&name_of(paths));
    let site = site_of_log(&trace, &referrals)
        .map_err(|error| Failure(format!("{error}. {}", summary.words().join("\n"))))?;
    Ok((site, summary))
}

fn name_of(logs: &[PathBuf]) -> String {
    match logs {
        [only] if only == Path::new("-") => "standard input".to_owned(),
        [only] => only.display().to_string(),
        many => format!("{} logs", many.len()),
    }
}
