//! Which part of a file a request gets: conditions first, then ranges (RFC 9110, sections 13.2 and 14.2).

use baton_content::Stored;
use baton_http::{Method, Precondition, Ranges, RequestHead, Stamp, select_ranges};

/// The part of a file that the client gets.
#[derive(Debug)]
pub(crate) enum Selection {
    /// Nothing: it has the file.
    NotModified,
    /// Nothing: a condition of the request does not hold.
    PreconditionFailed,
    /// These parts, or all of it.
    Bytes(Ranges),
}

/// Selects the part that the client gets. With more than `ranges_max` ranges it gets the whole file.
pub(crate) fn select(now: &Stamp, head: &RequestHead<'_>, stored: &Stored, ranges_max: usize) -> Selection {
    if !head.conditions.is_empty() {
        match head.conditions.evaluate(head.method, &stored.etag(), stored.modified_unix_seconds()) {
            Precondition::Proceed => {}
            Precondition::NotModified => return Selection::NotModified,
            Precondition::Failed => return Selection::PreconditionFailed,
        }
    }
    // A range is for GET only.
    let range = head.range.filter(|_| head.method == Method::Get && may_add(now, head, stored));
    Selection::Bytes(range.map_or(Ranges::Whole, |range| select_ranges(range, stored.len(), ranges_max)))
}

/// Whether the part of a file that is asked for may be added to what the client has (`If-Range`).
fn may_add(now: &Stamp, head: &RequestHead<'_>, stored: &Stored) -> bool {
    head.conditions.range_applies(&stored.etag(), stored.modified_unix_seconds(), now.unix_seconds)
}
