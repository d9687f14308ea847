//! Published statistics of three logs (Pai, *Cache Management in Scalable Network Servers*, 1999, sections 2.4.4,
//! 3.2.2, 3.3.2), and assumptions where there are none.
//!
//! Megabytes and kilobytes are taken as powers of two.

/// Statistics of a log, from which [`super::synthesize`] makes a trace.
#[derive(Clone, Copy, Debug)]
pub struct LogStatistics {
    /// What to call the trace.
    pub name: &'static str,
    /// Number of targets.
    pub targets: u32,
    /// The sum of their sizes, in bytes.
    pub bytes: u64,
    /// Number of requests in the log.
    pub requests: u64,
    /// How many of them are made by default: logs may be longer than is needed to judge a policy.
    pub requests_default: u64,
    /// The share of the most frequent target in the requests.
    pub hottest_share: f64,
    /// How many bytes of the most frequent targets cover which share of the requests.
    pub coverage: &'static [(u64, f64)],
    /// Mean size of an answer, in bytes.
    pub request_bytes: u64,
    /// The share of the time in which the rarest target is requested; the hottest is requested all the time.
    pub rarest_window: f64,
    /// What of the above is assumed, and why.
    pub assumed: &'static str,
}

/// Logs of seven servers of a university over two months, merged.
pub const RICE: LogStatistics = LogStatistics {
    name: "rice",
    targets: 37_703,
    bytes: 1418 * MB,
    requests: 2_300_000,
    requests_default: 2_300_000,
    hottest_share: 0.02,
    coverage: &[(560 * MB, 0.97), (705 * MB, 0.98), (927 * MB, 0.99)],
    request_bytes: 17 * KB,
    rarest_window: 0.1,
    assumed: "the number of requests (a miss ratio of 2 % needs more than 1.9 million: each target is missed once), and \
              that rare targets are requested within a tenth of the two months (fitted: with this one number, LARD/R \
              does about 3.9 times what WRR does at eight nodes, as published)",
};

/// The main server of a large company over three and a half days of June 1998.
pub const IBM: LogStatistics = LogStatistics {
    name: "ibm",
    targets: 38_527,
    bytes: 1029 * MB,
    requests: 15_500_000,
    requests_default: 3_000_000,
    hottest_share: 0.05,
    coverage: &[(51 * MB, 0.97), (80 * MB, 0.98), (182 * MB, 0.99)],
    request_bytes: 8 * KB,
    rarest_window: 1.0,
    assumed: "the number of requests (50 a second), and the mean size of a request (below that of the Rice log, as \
              the published throughput asks for)",
};

/// The server of a chess match in May 1997: many requests to few targets, which one node's memory holds.
pub const CHESS: LogStatistics = LogStatistics {
    name: "chess",
    targets: 600,
    bytes: 24 * MB,
    requests: 1_000_000,
    requests_default: 1_000_000,
    hottest_share: 0.08,
    coverage: &[(6 * MB, 0.97)],
    request_bytes: 12 * KB,
    rarest_window: 1.0,
    assumed: "everything but that the working set fits into 32 MB and that few targets get most requests",
};

const MB: u64 = 1 << 20;
const KB: u64 = 1 << 10;
