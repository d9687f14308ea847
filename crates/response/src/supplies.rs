//! What finishing a response takes from the thread that does it.

use baton_buf::{FileSlice, Pool};
use baton_http::Stamp;
use baton_site::mark::Ids;
use baton_telemetry::log::AccessLogs;
use baton_telemetry::metrics::Tally;

use crate::digests::Digests;
use crate::send_way::SendWays;

/// What the thread lends. Nothing in it belongs to a connection.
#[derive(Debug)]
pub struct Supplies<'a> {
    /// The time, for `Date` and for conditions.
    pub now: &'a Stamp,
    /// Memory for heads.
    pub heads: &'a mut Pool,
    /// Where boundaries of parts are drawn from.
    pub ids: &'a mut Ids,
    /// The access log, which may say fields of responses.
    pub log: &'a mut AccessLogs,
    /// Digests of bodies that stay in memory.
    pub digests: &'a mut Digests,
    /// What has been counted.
    pub tally: &'a mut Tally,
    /// What sending from memory and from the page cache costs.
    pub send_ways: &'a mut SendWays,
    /// Says what is in memory. `None`: the thread may wait for a disk.
    pub is_resident: Option<IsResident>,
}

/// Says whether so many bytes from the start of a slice are in memory, at this second of Unix time.
pub type IsResident = fn(&FileSlice, u64, u64) -> bool;
