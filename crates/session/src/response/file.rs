//! The bytes of a file: from memory or from the page cache, whichever costs less and waits for no disk.

use baton_buf::Piece;
use baton_content::{BodySource, Stored};
use baton_http::Stamp;
use baton_site::mark::Ids;

use crate::context::Context;
use crate::outlet::SendPolicy;
use crate::send_way::Trial;

/// A range of a file, from the source that costs less; and the measurement to make if only its head leaves with it.
pub(crate) fn range(
    ctx: &mut Context,
    stored: &Stored,
    first: u64,
    len: u64,
    by_reference: bool,
) -> (Piece, Option<Trial>) {
    let (way, trial) = choose(ctx, stored, len, by_reference);
    // Test the whole file, so that one test a second serves all its ranges.
    let may_go = || may_go(&stored.body_by(way, 0, stored.len()), &ctx.send, ctx.clock.stamp());
    match way == BodySource::Memory || may_go() {
        true => (stored.body_by(way, first, len), trial),
        false => (stored.body(first, len), None),
    }
}

/// The way for so many bytes of a file, and whether it is to be measured. `by_reference`: the client's connection takes
/// ranges of files.
pub(super) fn choose(
    ctx: &mut Context,
    stored: &Stored,
    len: u64,
    by_reference: bool,
) -> (BodySource, Option<Trial>) {
    match stored.has_both_ways() && by_reference {
        true => ctx.send_ways.choose(len),
        false => (BodySource::Memory, None),
    }
}

/// Whether sending this would not wait for a disk. If the page cache has dropped the file, the server sends its own
/// copy.
pub(super) fn may_go(piece: &Piece, policy: &SendPolicy, now: &Stamp) -> bool {
    match piece {
        Piece::File(slice) if policy.test_residency => {
            (policy.is_resident)(slice, slice.len(), now.unix_seconds)
        }
        _ => true,
    }
}

/// A boundary that the file contains with a probability of 2^-64, since no client can foresee it.
pub(super) fn boundary(ids: &mut Ids) -> String {
    format!("baton{:016x}", ids.draw() as u64)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use baton_buf::FileSlice;

    use super::*;
    use crate::cold_file::cold_file;
    use crate::outlet::{SendfileMode, is_resident};

    /// A file in memory goes from the page cache only if it is there, unless the thread may wait anyway.
    #[test]
    fn no_send_waits_for_a_disk_with_the_bytes_in_memory() {
        const LEN: u64 = 64 * 1024;
        let now = Stamp::at(1);
        let policy = |test_residency| SendPolicy {
            sendfile: SendfileMode::NonBlocking,
            quantum_bytes: u64::MAX,
            test_residency,
            is_resident,
            kernel_tls: false,
        };
        let file = cold_file(LEN);
        let piece = Piece::from(FileSlice::new(Arc::clone(&file), 0, LEN));
        assert!(may_go(&piece, &policy(false), &now));
        assert!(!may_go(&piece, &policy(true), &now));
        baton_sys::residency::bring_in(&*file, 0, LEN).unwrap();
        assert!(may_go(&piece, &policy(true), &now));
    }
}
