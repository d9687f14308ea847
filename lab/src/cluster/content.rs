//! What clients ask a cluster for: files, and the order in which they are requested; for servers, the load generator and the
//! simulator alike.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Result, bail};
use baton_dispatch::target_hash;
use baton_sim::trace::{TargetFacts, Trace, TraceRequest, Zipf};
use serde::Deserialize;

use crate::files;
use crate::load::LoadRequest;
use crate::mix::{self, MixFile};

/// A kind of content.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) enum TraceKind {
    /// The static part of SPECweb99: many small files, some long ones.
    Mix,
    /// Requests by Zipf's law with this exponent.
    Zipf(f64),
}

impl fmt::Display for TraceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mix => f.write_str("mix"),
            Self::Zipf(alpha) => write!(f, "zipf:{alpha}"),
        }
    }
}

impl TryFrom<String> for TraceKind {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl FromStr for TraceKind {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let alpha = |text: &str| text.parse().ok().filter(|alpha| (0.0..=5.0).contains(alpha));
        match text.strip_prefix("zipf:").map(alpha) {
            Some(Some(alpha)) => Ok(Self::Zipf(alpha)),
            None if text == "mix" => Ok(Self::Mix),
            _ => bail!("there is no trace {text:?}; there are mix and zipf:EXPONENT, as in zipf:1.0"),
        }
    }
}

/// Files and an order of requests for them.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    kind: TraceKind,
    /// Path on the server, and length in bytes.
    files: Vec<(String, u64)>,
    order: Vec<u32>,
}

impl Content {
    /// About so many megabytes (10^6).
    pub(crate) fn make(kind: TraceKind, megabytes: u64) -> Self {
        match kind {
            TraceKind::Mix => {
                let directories =
                    ((megabytes * 1_000_000) as f64 / MIX_DIRECTORY_BYTES).round().max(1.0) as usize;
                let files: Vec<MixFile> = MixFile::all(directories).collect();
                let numbers: std::collections::HashMap<MixFile, u32> =
                    files.iter().copied().zip(0..).collect();
                let order = mix::sequence(directories, REQUESTS).iter().map(|file| numbers[file]).collect();
                let files = files.into_iter().map(|file| (file.path(), file.bytes())).collect();
                Self { kind, files, order }
            }
            TraceKind::Zipf(alpha) => {
                let trace = Self::zipf(alpha, megabytes).trace(SEED);
                let file = |(rank, target): (usize, &TargetFacts)| (zipf_path(rank), target.bytes.max(1));
                let files = trace.targets().iter().enumerate().map(file).collect();
                let order = trace.requests().iter().map(|request| request.target()).collect();
                Self { kind, files, order }
            }
        }
    }

    fn zipf(alpha: f64, megabytes: u64) -> Zipf {
        let targets = (megabytes as f64 * 1e6 / (ZIPF_KB * 1024.0)).round().max(1.0) as u32;
        Zipf { targets, alpha, kb: ZIPF_KB, requests: REQUESTS as u64 }
    }

    pub(crate) fn kind(&self) -> TraceKind {
        self.kind
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes).sum()
    }

    pub(crate) fn files(&self) -> usize {
        self.files.len()
    }

    /// Writes the files below `root`.
    pub(crate) fn write(&self, root: &Path) -> Result<()> {
        self.files
            .iter()
            .try_for_each(|(path, bytes)| files::write_one(root, path, *bytes).map_err(Into::into))
    }

    /// The requests from number `first` on, over and over.
    pub(crate) fn requests(&self, first: usize) -> Vec<LoadRequest> {
        let request = |file: u32| {
            let (path, bytes) = &self.files[file as usize];
            LoadRequest::file(path, *bytes)
        };
        self.from(first).take(self.order.len()).map(request).collect()
    }

    /// The requests for each of `parts` files: about the part of a node in a cluster that distributes by content. Also their
    /// bytes in memory.
    pub(crate) fn part(&self, parts: usize) -> (Vec<LoadRequest>, u64) {
        let is_in = |file: u32| (file as usize).is_multiple_of(parts.max(1));
        let request = |file: u32| {
            let (path, bytes) = &self.files[file as usize];
            LoadRequest::file(path, *bytes)
        };
        let requests = self.order.iter().copied().filter(|file| is_in(*file)).map(request).collect();
        let files = (0..).zip(&self.files).filter(|(file, _)| is_in(*file));
        (requests, files.map(|(_, (_, bytes))| bytes.next_multiple_of(PAGE_BYTES)).sum())
    }

    /// For the simulator: `warm_up` requests from number `first` on, then as many as are `measured`, from another number on.
    ///
    /// Memory and disks hold pages; so does a simulated file.
    pub(crate) fn trace(&self, warm_up: (usize, u64), measured: (usize, u64)) -> Trace {
        let facts = |(path, bytes): &(String, u64)| TargetFacts {
            hash: target_hash(path.as_bytes()),
            bytes: bytes.next_multiple_of(PAGE_BYTES),
            dynamic: false,
        };
        let part =
            |(first, count): (usize, u64)| self.from(first).take(count as usize).map(TraceRequest::whole);
        let requests = part(warm_up).chain(part(measured)).collect();
        Trace::new(self.kind.to_string(), self.files.iter().map(facts).collect(), requests)
    }

    fn from(&self, first: usize) -> impl Iterator<Item = u32> {
        self.order.iter().copied().cycle().skip(first % self.order.len())
    }
}

/// As the simulator names targets.
fn zipf_path(rank: usize) -> String {
    format!("/zipf/{rank}")
}

/// Requests after which the order repeats itself.
const REQUESTS: usize = 400_000;
const MIX_DIRECTORY_BYTES: f64 = 5_119_484.0;
/// The mean length of a file by Zipf's law, that of the mix's replies.
const ZIPF_KB: f64 = 15.0;
const SEED: u64 = 1;
const PAGE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_have_names() {
        for text in ["mix", "zipf:1.1"] {
            assert_eq!(text.parse::<TraceKind>().unwrap().to_string(), text);
        }
        for wrong in ["", "zipf", "zipf:x", "zipf:9", "mix:1"] {
            assert!(wrong.parse::<TraceKind>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn servers_and_simulator_get_the_same_requests() {
        for kind in [TraceKind::Mix, TraceKind::Zipf(1.0)] {
            let content = Content::make(kind, 20);
            assert!((content.bytes() as f64 / 20e6 - 1.0).abs() < 0.05, "{kind}: {} bytes", content.bytes());
            let asked = content.requests(7);
            let trace = content.trace((7, 2), (100, 1));
            for (simulated, number) in trace.requests().iter().zip([0, 1, 93]) {
                let (target, asked) = (trace.target(simulated.target()), &asked[number]);
                assert_eq!(target.hash, target_hash(asked.path.as_bytes()));
                assert_eq!(target.bytes, asked.bytes.unwrap().next_multiple_of(4096));
            }
        }
    }
}
