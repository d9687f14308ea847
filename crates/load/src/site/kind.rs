//! Which site to make, as a file has it.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::access_log::{self, PublishedLog};
use super::model::LoadSite;
use super::specweb99::{SEED, THESIS_DIRECTORIES, THESIS_REQUESTS};
use super::specweb2005::{self, Application};
use super::{compute, media, prompts, sizes, specweb99, surge};
use crate::sessions::usual;

/// Which site to make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SiteKind {
    /// SPECweb99's static files, of which only those that are asked for are there.
    Specweb99 {
        /// Directories of 36 files.
        #[serde(default = "usual::<THESIS_DIRECTORIES>")]
        directories: usize,
        /// Requests of the script.
        #[serde(default = "usual::<THESIS_REQUESTS>")]
        requests: usize,
    },
    /// Pages in PHP, with the mix and the sizes of one of SPECweb2005's applications.
    Specweb2005 {
        /// Which application.
        application: Application,
        /// Requests of the script.
        #[serde(default = "usual::<100_000>")]
        requests: usize,
    },
    /// SURGE: sizes with a heavy tail, Zipf's popularity.
    Surge {
        /// Files of the site.
        #[serde(default = "usual::<2_000>")]
        files: usize,
        /// Requests of the script.
        #[serde(default = "usual::<100_000>")]
        requests: usize,
    },
    /// Files of these sizes, asked for in turn.
    Sizes {
        /// Sizes in bytes.
        bytes: Vec<u64>,
    },
    /// A script in PHP that adds so many times, and sends a file.
    Compute {
        /// Length of the file in bytes.
        #[serde(default = "usual_compute_bytes")]
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
    },
    /// Films, and viewers whose players ask for parts.
    Media {
        /// Films of some six megabytes.
        films: usize,
        /// Sessions of the script.
        #[serde(default = "usual::<5_000>")]
        sessions: usize,
    },
    /// No file: prompts that are posted to `/v1/chat`.
    Prompts {
        /// Texts with which they begin.
        prefixes: usize,
        /// Prompts.
        #[serde(default = "usual::<20_000>")]
        requests: usize,
    },
}

impl SiteKind {
    /// Makes the site. Nothing is written yet.
    ///
    /// # Errors
    /// If a number makes no site, or a log cannot be read.
    pub fn make(&self) -> Result<LoadSite> {
        let site = match self {
            Self::Specweb99 { directories, requests } => {
                ensure!(*directories > 0, "specweb99 needs a directory");
                specweb99::make(*directories, *requests, SEED)
            }
            Self::Specweb2005 { application, requests } => specweb2005::make(*application, *requests, SEED),
            Self::Surge { files, requests } => {
                ensure!(*files > 0, "surge needs a file");
                surge::make(*files, *requests, SEED)
            }
            Self::Sizes { bytes } => sizes::make(bytes),
            Self::Compute { bytes, operations } => compute::make(*bytes, *operations),
            Self::Log { path, set_mib } => access_log::make(path, *set_mib)?,
            Self::Published { log, set_mib, bytes_min } => {
                access_log::published(*log, *set_mib, *bytes_min, SEED)
            }
            Self::Media { films, sessions } => {
                ensure!(*films > 0, "media needs a film");
                media::make(*films, *sessions, SEED)
            }
            Self::Prompts { prefixes, requests } => {
                ensure!(*prefixes > 0, "prompts need a text to begin with");
                prompts::make(*prefixes, *requests, SEED)
            }
        };
        ensure!(site.script.session_count() > 0, "{}: the site has no request", site.name);
        Ok(site)
    }
}

fn usual_compute_bytes() -> u64 {
    60 << 10
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
