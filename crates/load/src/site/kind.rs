//! Which site to make, as a file has it.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::access_log::{self, PublishedLog};
use super::model::LoadSite;
use super::specweb2005::{self, Application};
use super::{compute, media, prompts, sizes, specweb99, surge};

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
        /// Bytes that each file has at the least.
        #[serde(default)]
        bytes_min: u64,
        /// Decides the order.
        #[serde(default = "default_seed")]
        seed: u64,
    },
    /// Films, and viewers whose players ask for parts.
    Media {
        /// Films of some six megabytes.
        films: usize,
        /// Sessions of the script.
        #[serde(default = "default_viewers")]
        sessions: usize,
        /// Decides which.
        #[serde(default = "default_seed")]
        seed: u64,
    },
    /// No file: prompts that are posted to `/v1/chat`.
    Prompts {
        /// Texts with which they begin.
        prefixes: usize,
        /// Prompts.
        #[serde(default = "default_prompts")]
        requests: usize,
        /// Decides which.
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
        let site = match self {
            Self::Specweb99 { directories, requests, seed } => {
                ensure!(*directories > 0, "specweb99 needs a directory");
                specweb99::make(*directories, *requests, *seed)
            }
            Self::Specweb2005 { application, requests, seed } => {
                specweb2005::make(*application, *requests, *seed)
            }
            Self::Surge { files, requests, seed } => {
                ensure!(*files > 0, "surge needs a file");
                surge::make(*files, *requests, *seed)
            }
            Self::Sizes { bytes } => sizes::make(bytes),
            Self::Compute { bytes, operations } => compute::make(*bytes, *operations),
            Self::Log { path, set_mib } => access_log::make(path, *set_mib)?,
            Self::Published { log, set_mib, bytes_min, seed } => {
                access_log::published(*log, *set_mib, *bytes_min, *seed)
            }
            Self::Media { films, sessions, seed } => {
                ensure!(*films > 0, "media needs a film");
                media::make(*films, *sessions, *seed)
            }
            Self::Prompts { prefixes, requests, seed } => {
                ensure!(*prefixes > 0, "prompts need a text to begin with");
                prompts::make(*prefixes, *requests, *seed)
            }
        };
        ensure!(site.script.session_count() > 0, "{}: the site has no request", site.name);
        Ok(site)
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
fn default_prompts() -> usize {
    20_000
}
fn default_viewers() -> usize {
    5_000
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_needs_something_to_ask_for() {
        let mistake = |text: &str| {
            let kind: SiteKind = serde_json::from_str(text).unwrap();
            kind.make().unwrap_err().to_string()
        };
        assert!(mistake(r#"{ "kind": "specweb99", "directories": 0 }"#).contains("needs a directory"));
        assert!(mistake(r#"{ "kind": "surge", "requests": 0 }"#).contains("no request"));
        assert!(mistake(r#"{ "kind": "published", "log": "chess", "set_mib": 0 }"#).contains("no request"));
    }

    #[test]
    fn what_a_kind_does_not_have_is_a_mistake() {
        let mistake =
            serde_json::from_str::<SiteKind>(r#"{ "kind": "specweb99", "folders": 3 }"#).unwrap_err();
        assert!(mistake.to_string().contains("folders"), "{mistake}");
    }
}
