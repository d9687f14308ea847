//! Traversals: an aggregate's bytes, a run at a time.

use baton_buf::Piece;
use libc::{c_char, c_long, size_t};

use super::aggregates::{Agg, functions};
use super::descriptors::look_at;
use super::{Code, code, get, give, put};

/// `IOL_Context`.
pub struct Traversal {
    agg: *mut Agg,
    /// Of the next run, in bytes.
    position: usize,
}

/// The run at byte `position`, from there on; an empty one at the end.
fn run(agg: &mut Agg, position: usize) -> Result<&[u8], Code> {
    if agg.blank().is_some() {
        let part = agg.blank().and_then(|blank| blank.part_at(position));
        return Ok(part.map_or(&[][..], |part| part));
    }
    let bytes = agg.frozen();
    look_at(bytes)?;
    let mut before = 0;
    for piece in bytes.pieces() {
        let Piece::Memory(slice) = piece else { return Err(libc::EINVAL) };
        if position < before + slice.len() {
            return Ok(&slice[position - before..]);
        }
        before += slice.len();
    }
    Ok(&[])
}

functions! {
    /// Begins a traversal.
    fn IOL_gen_start(src: *mut Agg, ctxt: *mut *mut Traversal) {
        let agg = get(src)?;
        if agg.is_zombie {
            return Err(libc::EINVAL);
        }
        give(ctxt, Traversal { agg: src, position: 0 })?;
        agg.contexts += 1;
        Ok(())
    }

    /// The next run, to be read.
    fn IOL_gen_nextRd(ctxt: *mut Traversal, addr: *mut *const c_char, length: *mut size_t) {
        let traversal = get(ctxt)?;
        let run = run(get(traversal.agg)?, traversal.position)?;
        put(addr, run.as_ptr().cast())?;
        put(length, run.len())?;
        traversal.position += run.len();
        Ok(())
    }

    /// The next run, to be written.
    fn IOL_gen_nextWr(ctxt: *mut Traversal, addr: *mut *mut c_char, length: *mut size_t) {
        let traversal = get(ctxt)?;
        let blank = get(traversal.agg)?.blank().ok_or(libc::EPERM)?;
        let run = blank.part_at(traversal.position).unwrap_or_default();
        put(addr, run.as_mut_ptr().cast())?;
        put(length, run.len())?;
        traversal.position += run.len();
        Ok(())
    }

    /// Ends a traversal, and with the last one an aggregate that was destroyed.
    fn IOL_gen_end(ctxt: *mut Traversal) {
        get(ctxt)?;
        let traversal = Box::from_raw(ctxt);
        let agg = get(traversal.agg)?;
        agg.contexts -= 1;
        if agg.is_zombie && agg.contexts == 0 {
            drop(Box::from_raw(traversal.agg));
        }
        Ok(())
    }

    /// Goes to byte `pos`.
    fn IOL_gen_seek(ctxt: *mut Traversal, pos: c_long) {
        let traversal = get(ctxt)?;
        let position = usize::try_from(pos).map_err(|_| libc::EINVAL)?;
        if position > get(traversal.agg)?.len() {
            return Err(libc::EINVAL);
        }
        traversal.position = position;
        Ok(())
    }

    /// Where the next run begins.
    fn IOL_gen_tell(ctxt: *mut Traversal, pos: *mut c_long) {
        put(pos, get(ctxt)?.position as c_long)
    }
}
