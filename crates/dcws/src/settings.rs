//! What the process is told: the sites that cooperate, and how.

use std::fmt;
use std::path::PathBuf;

use baton_dispatch::migration::{LoadMetric, MigrationSettings};
use baton_pattern::Pattern;
use serde::{Deserialize, Serialize};

use crate::{Origin, Rules};

/// The settings of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentsSettings {
    /// Unix socket on which workers pass on what peers ask.
    pub socket: PathBuf,
    /// The sites.
    pub sites: Vec<SiteSettings>,
}

/// A site that cooperates.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteSettings {
    /// Its URL.
    pub at: Origin,
    /// The servers that it cooperates with.
    pub peers: Vec<Origin>,
    /// The secret that all of them have.
    pub secret: Vec<u8>,
    /// PEM file with the authorities that are trusted with certificates of peers; the system's if none.
    pub authorities: Option<PathBuf>,
    /// Its files; none if it lends nothing.
    pub files: Option<FilesSettings>,
    /// Milliseconds between two decisions.
    pub statistics_ms: u64,
    /// Milliseconds between two questions to a peer.
    pub ping_ms: u64,
    /// Milliseconds that a peer may take to reply.
    pub reply_ms: u64,
    /// Milliseconds between two moves to or from a peer.
    pub peer_ms: u64,
    /// Milliseconds that a document stays away before it comes home for its peer's load.
    pub recall_ms: u64,
    /// How much busier one server must be, in percent of the other's load.
    pub imbalance_percent: u32,
    /// What a load is.
    pub metric: LoadMetric,
    /// Load of a document that is worth a move, in thousandths of its server's.
    pub threshold_permille: u32,
    /// Documents that are known.
    pub documents_max: usize,
}

/// The files of a site that lends documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesSettings {
    /// The folder.
    pub root: PathBuf,
    /// Index files of a folder, in order.
    pub index: Vec<String>,
    /// Whether names that begin with a dot are served.
    pub hidden: bool,
    /// Paths of routes that answer otherwise.
    pub routed: Vec<String>,
    /// Media types by extension, besides those that are built in.
    pub media_types: Vec<(String, String)>,
    /// Media types that may move.
    pub types: Vec<String>,
    /// Whether pages may move.
    pub pages: bool,
    /// Globs of paths that never move.
    pub entry_points: Vec<String>,
    /// Milliseconds between two looks at the folder.
    pub scan_ms: u64,
}

impl SiteSettings {
    /// What the policy is told.
    pub(crate) fn migration(&self) -> MigrationSettings {
        MigrationSettings {
            statistics_us: self.statistics_ms * 1000,
            ping_us: self.ping_ms * 1000,
            peer_us: self.peer_ms * 1000,
            recall_us: self.recall_ms * 1000,
            imbalance_percent: self.imbalance_percent,
            metric: self.metric,
            threshold_permille: self.threshold_permille,
            documents_max: self.documents_max,
            ..MigrationSettings::default()
        }
    }
}

impl FilesSettings {
    pub(crate) fn rules(&self) -> Rules {
        // The configuration has been checked.
        let entry_points = self.entry_points.iter().filter_map(|glob| Pattern::glob(glob).ok());
        Rules { types: self.types.clone(), pages: self.pages, entry_points: entry_points.collect() }
    }
}

impl fmt::Debug for SiteSettings {
    /// Never shows the secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SiteSettings")
            .field("at", &self.at)
            .field("peers", &self.peers)
            .finish_non_exhaustive()
    }
}
