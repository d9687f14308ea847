//! SHA-256 of bodies: those that stay in memory are looked up.

use aws_lc_rs::digest::{Context, SHA256};
use baton_buf::{Aggregate, Piece, SharedSlice, Slice, SliceName};
use baton_site::plan::Digest;

/// Digests of bodies that stay in memory, such as the blocks of the shared cache: each is computed once.
///
/// A newer one takes the place of another in the table.
#[derive(Debug, Default)]
pub struct Digests(Vec<Option<(SliceName, u128)>>);

impl Digests {
    /// The digest of a body; `None`: some of it is in no memory.
    pub(crate) fn of(&mut self, body: &Aggregate, digest: Digest) -> Option<u128> {
        let mut pieces = body.pieces();
        match (digest, pieces.next(), pieces.next()) {
            (Digest::Kept, Some(Piece::Memory(slice)), None) => Some(self.of_kept(slice)),
            _ => computed(body),
        }
    }

    fn of_kept(&mut self, slice: &Slice) -> u128 {
        self.0.resize(KEPT_MAX, None);
        let known = &mut self.0[place(slice)];
        match known {
            Some((name, digest)) if name.is_of(slice) => *digest,
            _ => {
                let digest = number(aws_lc_rs::digest::digest(&SHA256, slice).as_ref());
                *known = Some((slice.name(), digest));
                digest
            }
        }
    }
}

fn computed(body: &Aggregate) -> Option<u128> {
    let mut context = Context::new(&SHA256);
    for piece in body.pieces() {
        match piece {
            Piece::Memory(slice) => context.update(slice),
            Piece::Shared(slice) => update_by_copies(&mut context, slice.clone()),
            Piece::File(_) | Piece::Piped(_) => return None,
        }
    }
    Some(number(context.finish().as_ref()))
}

/// Memory that an application may write to is looked at in copies alone.
fn update_by_copies(context: &mut Context, mut rest: SharedSlice) {
    let mut copy = Vec::with_capacity(COPY_BYTES.min(rest.len()));
    while !rest.is_empty() {
        copy.clear();
        rest.copy_prefix_to(COPY_BYTES, &mut copy);
        context.update(&copy);
        rest.advance(copy.len());
    }
}

/// 128 bits of a digest.
fn number(digest: &[u8]) -> u128 {
    digest.iter().take(size_of::<u128>()).fold(0, |number, byte| number << 8 | u128::from(*byte))
}

fn place(slice: &Slice) -> usize {
    // By Fibonacci's number: buffers of one size lie at addresses whose lower bits are equal.
    let hash = (slice.as_ptr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash >> (u64::BITS - KEPT_MAX.ilog2())) as usize
}

/// Digests that a thread keeps, in 48 KiB.
const KEPT_MAX: usize = 1 << 10;

/// Bytes of a copy, which stays in the processor's first cache.
const COPY_BYTES: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::sync::Arc;

    use baton_buf::{Buffer, FileSlice, Loan, OpenFile};
    use baton_pool::Region;

    use super::*;

    fn body(pieces: impl IntoIterator<Item = Piece>) -> Aggregate {
        let mut body = Aggregate::new();
        pieces.into_iter().for_each(|piece| body.push(piece));
        body
    }

    fn memory(text: &str) -> Piece {
        Buffer::new(text.into()).into()
    }

    /// Memory that another process may write to, with these bytes.
    fn shared(bytes: &[u8]) -> Piece {
        let (region, descriptor) = Region::create(bytes.len()).unwrap();
        File::from(descriptor).write_all_at(bytes, 0).unwrap();
        Loan::new(Arc::new(region), 0, bytes.len()).slice().into()
    }

    #[test]
    fn a_digest_is_that_of_the_bytes_wherever_they_lie() {
        // printf 'a body in pieces' | sha256sum | cut -c -32
        const EXPECTED: Option<u128> = Some(0x25ad_60b0_4b9f_5be5_ad45_15ca_0644_d3db);
        for digest in [Digest::Passing, Digest::Kept] {
            for pieces in [
                vec![memory("a body in pieces")],
                vec![memory("a body"), memory(" in "), memory("pieces")],
                vec![memory("a body"), shared(b" in pieces")],
                vec![shared(b"a body in pieces")],
            ] {
                assert_eq!(Digests::default().of(&body(pieces), digest), EXPECTED);
            }
            assert_ne!(Digests::default().of(&body([memory("a body in piecez")]), digest), EXPECTED);
        }
        let long: Vec<u8> = (0..3 * COPY_BYTES + 5).map(|at| at as u8).collect();
        let in_memory = Buffer::new(long.clone()).into();
        assert_eq!(computed(&body([shared(&long)])), computed(&body([in_memory])), "copy by copy");
    }

    #[test]
    fn what_is_in_a_file_is_not_read() {
        let file = Arc::new(OpenFile::new(tempfile::tempfile().unwrap().into()));
        let pieces = [memory("a head"), FileSlice::new(file, 0, 4).into()];
        assert_eq!(computed(&body(pieces)), None);
    }

    /// Goal: the digest of a buffer that stays is computed once. Method: a table that is wrong shows who has looked there.
    #[test]
    fn a_kept_body_is_looked_up() {
        let mut digests = Digests::default();
        let kept: Slice = Buffer::new(b"kept".to_vec()).into();
        let right = digests.of(&body([kept.clone().into()]), Digest::Kept);
        let entries: Vec<_> = digests.0.iter_mut().flatten().collect();
        assert_eq!(entries.len(), 1);
        entries.into_iter().for_each(|(_, digest)| *digest = 7);
        assert_eq!(digests.of(&body([kept.clone().into()]), Digest::Kept), Some(7));
        assert_eq!(digests.of(&body([kept.clone().into()]), Digest::Passing), right);
        let mut part = kept;
        part.split_off(3);
        assert_eq!(digests.of(&body([part.into()]), Digest::Kept), computed(&body([memory("kep")])));
    }

    /// Goal: other bytes at the address of some that are gone have a digest of their own.
    #[test]
    fn a_name_outlives_its_buffer() {
        let mut digests = Digests::default();
        let mut places = std::collections::HashSet::new();
        let mut met_again = false;
        for number in 0..1_000 {
            let text = format!("{number:08}");
            let slice: Slice = Buffer::new(text.clone().into()).into();
            met_again |= !places.insert(slice.as_ptr());
            let digest = digests.of(&body([slice.into()]), Digest::Kept);
            assert_eq!(digest, computed(&body([memory(&text)])), "{text}");
        }
        assert!(met_again, "the allocator gives memory out again");
    }
}
