//! Which site to make, as a file has it.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::access_log::{self, PublishedLog};
use super::model::LoadSite;
use super::specweb2005::{self, Application};
use super::{compute, sizes, specweb99, surge};

/// Which site to make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SiteKind {
    /// SPECweb99's static files, of which only those that are asked for are there.
    Specweb99 {
        /// Directories of 36 files.
        #[serde(default = "default_directories")]
        directories: usize,
        /// Requests of the script.
        #[serde(default = "default_requests")]
        requests: usize,
        /// Decides which.
        #[serde(default = "default_seed")]
        seed: u64,
    },
    /// Pages in PHP, with the mix and the sizes of one of SPECweb2005's applications.
    Specweb2005 {
        /// Which application.
        application: Application,
        /// Requests of the script.
        #[serde(default = "default_small_requests")]
        requests: usize,
        /// Decides which.
        #[serde(default = "default_seed")]
        seed: u64,
    },
    /// SURGE: sizes with a heavy tail, Zipf's popularity.
    Surge {
        /// Files of the site.
        #[serde(default = "default_surge_files")]
        files: usize,
        /// Requests of the script.
        #[serde(default = "default_small_requests")]
        requests: usize,
        /// Decides which.
        #[serde(default = "default_seed")]
        seed: u64,
    },
    /// Files of these sizes, asked for in turn. Without any, those of WebStone.
    Sizes {
        /// Sizes in bytes.
        #[serde(default)]
        bytes: Vec<u64>,
    },
    /// A script in PHP that adds so many times, and sends a file.
    Compute {
        /// Length of the file in bytes.
        #[serde(default = "default_compute_bytes")]
        bytes: u64,
        /// Additions for each request.
        operations: u64,
    },
    /// What an access log says: files as large as the largest answer, and its clients' visits.
    Log {
        /// The log: combined, or JSON of Baton or Caddy; may be compressed with gzip.
        path: PathBuf,
        /// Only the beginning of the log, until the set that it asks for is so large.
        #[serde(default)]
        set_mib: Option<f64>,
    },
    /// A log of which a source prints statistics, as the simulator makes it.
    Published {
        /// Which log.
        log: PublishedLog,
        /// Only the beginning, until the set is so large.
        #[serde(default)]
        set_mib: Option<f64>,
        /// Decides the order.
        #[serde(default = "default_seed")]
        seed: u64,
    },
}

impl SiteKind {
    /// Makes the site. Nothing is written yet.
    ///
    /// # Errors
    /// If a number makes no site, or a log cannot be read.
    pub fn make(&self) -> Result<LoadSite> {
        match self {
            Self::Specweb99 { directories, requests, seed } => {
                ensure!(*directories > 0 && *requests > 0, "specweb99 needs a directory and a request");
                Ok(specweb99::make(*directories, *requests, *seed))
            }
            Self::Specweb2005 { application, requests, seed } => {
                Ok(specweb2005::make(*application, *requests, *seed))
            }
            Self::Surge { files, requests, seed } => {
                ensure!(*files > 0, "surge needs a file");
                Ok(surge::make(*files, *requests, *seed))
            }
            Self::Sizes { bytes } => Ok(sizes::make(bytes)),
            Self::Compute { bytes, operations } => Ok(compute::make(*bytes, *operations)),
            Self::Log { path, set_mib } => access_log::make(path, *set_mib),
            Self::Published { log, set_mib, seed } => Ok(access_log::published(*log, *set_mib, *seed)),
        }
    }
}

fn default_directories() -> usize {
    specweb99::THESIS_DIRECTORIES
}
fn default_requests() -> usize {
    specweb99::THESIS_REQUESTS
}
fn default_small_requests() -> usize {
    100_000
}
fn default_surge_files() -> usize {
    2_000
}
fn default_compute_bytes() -> u64 {
    60 << 10
}
fn default_seed() -> u64 {
    specweb99::SEED
}
