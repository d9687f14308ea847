//! Sites as the sources had them: what is served, and who asks for what. Each is made from a seed, the same on every
//! machine, and has its statistics beside those that its source prints.

mod access_log;
mod compute;
mod programs;
mod random;
mod sizes;
mod specweb2005;
pub mod specweb99;
mod statistics;
mod surge;
mod thinking;

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use crate::files;
use crate::script::Script;
pub use access_log::{ReplayedLog, replay};
pub use specweb2005::Application;
pub use statistics::Statistic;

/// A site and its visitors.
#[derive(Clone, Debug)]
pub struct Site {
    /// What to call it in figures.
    pub name: String,
    /// What lies below the document root.
    pub files: Vec<SiteFile>,
    /// Who asks for what.
    pub script: Script,
    /// What it is like, beside what its source prints.
    pub statistics: Vec<Statistic>,
}

/// One file of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteFile {
    /// Its path on the server, and below the document root.
    pub path: String,
    /// What is in it.
    pub content: SiteContent,
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiteContent {
    /// So many bytes of [text](files::text).
    Text(u64),
    /// A program in PHP.
    Program(&'static str),
}

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

impl SiteKind {
    /// Makes the site. Nothing is written yet.
    ///
    /// # Errors
    /// If a number makes no site, or a log cannot be read.
    pub fn make(&self) -> Result<Site> {
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

impl Site {
    /// Writes files below `root` that are missing or have another length. Existing ones are kept, so a second run costs
    /// nothing.
    ///
    /// # Errors
    /// What creating and writing files may say, with the name of the file.
    pub fn write(&self, root: &Path) -> io::Result<()> {
        for file in &self.files {
            match file.content {
                SiteContent::Text(bytes) => files::write_one(root, &file.path, bytes)?,
                SiteContent::Program(text) => files::write_text(root, &file.path, text)?,
            }
        }
        Ok(())
    }

    /// Bytes of all files: what a memory must hold for a server that reads each once.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let bytes = |file: &SiteFile| match file.content {
            SiteContent::Text(bytes) => bytes,
            SiteContent::Program(text) => text.len() as u64,
        };
        self.files.iter().map(bytes).sum()
    }
}

impl SiteFile {
    fn text(path: impl Into<String>, bytes: u64) -> Self {
        Self { path: path.into(), content: SiteContent::Text(bytes) }
    }
}

const MIB: f64 = 1_048_576.0;

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
