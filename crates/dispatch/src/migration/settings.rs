//! What can be set about migration, with the published values as defaults where there are any.

use serde::{Deserialize, Serialize};

/// Settings of a home server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigrationSettings {
    /// What a load is.
    pub metric: LoadMetric,
    /// How often loads are computed and a move is decided (T_st), in microseconds. One document at most moves per interval.
    pub statistics_us: u64,
    /// How long a peer may be silent before it is asked for its load (T_pi), in microseconds.
    pub ping_us: u64,
    /// How long no other document moves to or from a peer after one did (T_coop), in microseconds: until its load tells
    /// what the last one weighs.
    pub peer_us: u64,
    /// How long a document stays with its peer before it may be recalled for the peer's load (T_home), in microseconds.
    pub recall_us: u64,
    /// Load of a document from which it is worth a migration (T), in thousandths of its server's load. Halved until a
    /// document has it.
    pub threshold_permille: u32,
    /// How much busier one server must be than the other for a document to move, in percent of the other's load.
    pub imbalance_percent: u32,
    /// How many questions in a row a peer leaves unanswered before its documents are recalled.
    pub silences_max: u32,
    /// Documents that are known; others stay at home.
    pub documents_max: usize,
    /// Links that are known, each counted once per page.
    pub links_max: usize,
    /// Peers that may ever join.
    pub peers_max: usize,
}

/// What a load is. All servers that cooperate must count the same thing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadMetric {
    /// Requests per second, the source's connections (CPS): for sites of small files, where each costs about the same.
    Requests,
    /// Bytes of bodies per second (BPS): for sites of large files.
    Bytes,
    /// Bytes, and [`Self::REQUEST_BYTES`] for each request.
    #[default]
    Both,
}

impl LoadMetric {
    /// What a request weighs beside its bytes, by `both`: on the source's servers a request costs as much time as 62 KB.
    pub const REQUEST_BYTES: u64 = 64 << 10;

    /// What so many requests weigh whose responses have so many bytes together.
    #[must_use]
    pub const fn of(self, requests: u64, bytes: u64) -> u64 {
        match self {
            Self::Requests => requests,
            Self::Bytes => bytes,
            Self::Both => requests.saturating_mul(Self::REQUEST_BYTES).saturating_add(bytes),
        }
    }
}

impl Default for MigrationSettings {
    fn default() -> Self {
        Self {
            metric: LoadMetric::Both,
            // Baker, Moon, 1999, the table of parameters, at second hand (decision 0052).
            statistics_us: 10_000_000,
            ping_us: 20_000_000,
            peer_us: 60_000_000,
            recall_us: 300_000_000,
            // The algorithm takes T as given. From a hundredth on, a document's move shows in the next load.
            threshold_permille: 10,
            // Unpublished. Loads of equal servers differ by a tenth from one interval to the next.
            imbalance_percent: 120,
            // Unpublished. Three pings: clients of lent documents wait for a minute at most.
            silences_max: 3,
            documents_max: 1 << 20,
            links_max: 1 << 24,
            peers_max: 256,
        }
    }
}
