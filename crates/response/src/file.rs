//! The bytes of a file: from memory or from the page cache, whichever costs less and waits for no disk.

use baton_buf::Piece;
use baton_content::{BodySource, Stored};
use baton_http::Stamp;
use baton_site::mark::Ids;

use crate::send_way::Trial;
use crate::supplies::{IsResident, Supplies};

/// A range of a file, from the source that costs less; and the measurement to make if only its head leaves with it.
pub fn range(
    supplies: &mut Supplies<'_>,
    stored: &Stored,
    first: u64,
    len: u64,
    by_reference: bool,
) -> (Piece, Option<Trial>) {
    let (way, trial) = choose(supplies, stored, len, by_reference);
    // Test the whole file, so that one test a second serves all its ranges.
    let may_go = || may_go(&stored.body_by(way, 0, stored.len()), supplies.is_resident, supplies.now);
    match way == BodySource::Memory || may_go() {
        true => (stored.body_by(way, first, len), trial),
        false => (stored.body(first, len), None),
    }
}

/// The way for so many bytes of a file, and whether it is to be measured. `by_reference`: the client's connection takes
/// ranges of files.
pub(crate) fn choose(
    supplies: &mut Supplies<'_>,
    stored: &Stored,
    len: u64,
    by_reference: bool,
) -> (BodySource, Option<Trial>) {
    match stored.has_both_ways() && by_reference {
        true => supplies.send_ways.choose(len),
        false => (BodySource::Memory, None),
    }
}

/// Whether sending this would not wait for a disk. If the page cache has dropped the file, the server sends its own
/// copy.
pub(crate) fn may_go(piece: &Piece, is_resident: Option<IsResident>, now: &Stamp) -> bool {
    match (piece, is_resident) {
        (Piece::File(slice), Some(is_resident)) => is_resident(slice, slice.len(), now.unix_seconds),
        _ => true,
    }
}

/// A boundary that the file contains with a probability of 2^-64, since no client can foresee it.
pub(crate) fn boundary(ids: &mut Ids) -> String {
    format!("baton{:016x}", ids.draw() as u64)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use baton_buf::{FileSlice, OpenFile};

    use super::*;

    /// A file in memory goes from the page cache only if it is there, unless the thread may wait anyway.
    #[test]
    fn no_send_waits_for_a_disk_with_the_bytes_in_memory() {
        let file = OpenFile::new(File::open("/dev/null").unwrap().into());
        let piece = Piece::from(FileSlice::new(Arc::new(file), 0, 64 * 1024));
        let now = Stamp::at(1);
        assert!(may_go(&piece, None, &now));
        assert!(!may_go(&piece, Some(|_, _, _| false), &now));
        assert!(may_go(&piece, Some(|_, len, second| (len, second) == (64 * 1024, 1)), &now));
    }
}
