//! The requests for proxies and caches.

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;

use crate::comparison::Task;
use crate::load::LoadRequest;

/// One kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyWorkload {
    /// 1 KB that the origin sends, 64 kept connections.
    PassSmall,
    /// 16 KB that the origin sends, 64 kept connections.
    PassPage,
    /// 1 MB that the origin sends, 16 kept connections.
    PassLarge,
    /// 1 KB from the cache, 64 kept connections.
    HitSmall,
    /// 16 KB from the cache, 64 kept connections.
    HitPage,
    /// 1 MB from the cache, 16 kept connections.
    HitLarge,
}

impl ProxyWorkload {
    /// Whether the origin takes part, rather than the cache.
    pub(super) fn asks_the_origin(self) -> bool {
        matches!(self, Self::PassSmall | Self::PassPage | Self::PassLarge)
    }

    fn file(self) -> (&'static str, u64) {
        match self {
            Self::PassSmall | Self::HitSmall => ("1k.html", 1 << 10),
            Self::PassPage | Self::HitPage => ("16k.html", 16 << 10),
            Self::PassLarge | Self::HitLarge => ("1m.html", 1 << 20),
        }
    }
}

impl Task for ProxyWorkload {
    fn connections(self) -> usize {
        if matches!(self, Self::PassLarge | Self::HitLarge) { 16 } else { 64 }
    }

    fn requests(self) -> Vec<LoadRequest> {
        let folder = if self.asks_the_origin() { PASSED } else { CACHED };
        let (name, bytes) = self.file();
        vec![LoadRequest::page(format!("{folder}/{name}"), Some(bytes))]
    }
}

impl fmt::Display for ProxyWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PassSmall => "passed on, 1 KB",
            Self::PassPage => "passed on, 16 KB",
            Self::PassLarge => "passed on, 1 MB",
            Self::HitSmall => "from the cache, 1 KB",
            Self::HitPage => "from the cache, 16 KB",
            Self::HitLarge => "from the cache, 1 MB",
        })
    }
}

/// Below this, every request goes to the origin.
pub(super) const PASSED: &str = "/pass";
/// Below this, the cache answers.
pub(super) const CACHED: &str = "/hit";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::FIXED;

    #[test]
    fn every_file_that_is_asked_for_is_written() {
        for workload in ProxyWorkload::value_variants() {
            let (name, bytes) = workload.file();
            assert!(FIXED.contains(&(&format!("/{name}"), bytes)), "{workload}");
        }
    }
}
