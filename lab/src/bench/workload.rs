//! The requests for the servers.

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;

use crate::comparison::Task;
use crate::load::LoadRequest;
use crate::mix;

/// One kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// 1 KB over 64 kept connections.
    Small,
    /// 1 KB, a connection for each request.
    Close,
    /// 16 KB over 64 kept connections.
    Page,
    /// 100 KB over 64 kept connections.
    Image,
    /// 1 MB over 16 kept connections.
    Large,
    /// The SPECweb99-like mix of 1,440 files, 205 MB.
    Mix,
    /// As `small`, with 9,600 silent connections beside.
    Idle,
    /// As `small`, with and without an access log.
    Log,
}

impl Workload {
    fn title(self) -> &'static str {
        match self {
            Self::Small => "1 KB kept alive",
            Self::Close => "1 KB, a connection each",
            Self::Page => "16 KB",
            Self::Image => "100 KB",
            Self::Large => "1 MB",
            Self::Mix => "SPECweb99-like mix",
            Self::Idle => "1 KB beside 9,600 idle connections",
            Self::Log => "1 KB with access log",
        }
    }
}

impl Task for Workload {
    fn connections(self) -> usize {
        if self == Self::Large { 16 } else { 64 }
    }

    fn idle_connections(self) -> usize {
        if self == Self::Idle { 9_600 } else { 0 }
    }

    fn connection_per_request(self) -> bool {
        self == Self::Close
    }

    fn requests(self) -> Vec<LoadRequest> {
        let one = |path: &str, bytes| vec![LoadRequest::file(path, bytes)];
        match self {
            Self::Small | Self::Close | Self::Idle | Self::Log => one("/1k.html", 1 << 10),
            Self::Page => one("/16k.html", 16 << 10),
            Self::Image => one("/100k.html", 100 << 10),
            Self::Large => one("/1m.html", 1 << 20),
            Self::Mix => mix::sequence(mix::DIRECTORIES, MIX_REQUESTS)
                .into_iter()
                .map(|file| LoadRequest::file(file.path(), file.bytes()))
                .collect(),
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}

/// Long enough that the rare large files come as often as they should.
const MIX_REQUESTS: usize = 60_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::FIXED;

    #[test]
    fn every_fixed_file_that_is_asked_for_is_written() {
        for workload in Workload::value_variants().iter().filter(|workload| **workload != Workload::Mix) {
            for request in workload.requests() {
                assert!(FIXED.contains(&(request.path.as_str(), request.bytes.unwrap())), "{}", request.path);
            }
        }
    }
}
