//! Allocators and aggregates.

use baton_buf::Aggregate;
use libc::{c_int, c_void, size_t};

use super::process::default_allocator;
use super::{Code, code, code_of, get, give};
use crate::allocator::{Allocator, Blank};

/// `IOL_Agg`.
pub struct Agg {
    contents: Contents,
    /// Open traversals.
    pub(super) contexts: usize,
    /// Destroyed, as soon as there are none.
    pub(super) is_zombie: bool,
}

enum Contents {
    /// As `IOL_create` has made it.
    Blank(Blank, usize),
    Frozen(Aggregate),
}

/// `IOL_Vec`.
#[repr(C)]
pub struct Range {
    aggregate: *mut Agg,
    start: size_t,
    length: size_t,
}

impl From<Aggregate> for Agg {
    fn from(aggregate: Aggregate) -> Self {
        Self { contents: Contents::Frozen(aggregate), contexts: 0, is_zombie: false }
    }
}

impl Agg {
    /// The bytes, immutable from now on.
    pub(super) fn frozen(&mut self) -> &mut Aggregate {
        if let Contents::Blank(blank, _) = &mut self.contents {
            self.contents = Contents::Frozen(std::mem::take(blank).freeze());
        }
        match &mut self.contents {
            Contents::Frozen(aggregate) => aggregate,
            Contents::Blank(..) => unreachable!("it was frozen"),
        }
    }

    /// The memory, if nothing but writing has been done with it.
    pub(super) fn blank(&mut self) -> Option<&mut Blank> {
        match &mut self.contents {
            Contents::Blank(blank, _) => Some(blank),
            Contents::Frozen(_) => None,
        }
    }

    pub(super) fn len(&self) -> usize {
        match &self.contents {
            Contents::Blank(_, bytes) => *bytes,
            Contents::Frozen(aggregate) => aggregate.len() as usize,
        }
    }
}

/// The bytes of an aggregate, for an operation on them.
///
/// # Safety
/// As [`get`].
pub(super) unsafe fn bytes_of<'a>(agg: *mut Agg) -> Result<&'a mut Aggregate, Code> {
    // SAFETY: the caller's promise.
    let agg = unsafe { get(agg) }?;
    if agg.is_zombie { Err(libc::EINVAL) } else { Ok(agg.frozen()) }
}

/// The pool that `IOL_DEF_ALLOC` stands for, or another.
///
/// # Safety
/// As [`get`].
unsafe fn allocator_of(allocator: *mut Allocator) -> Result<Allocator, Code> {
    if allocator.is_null() {
        return default_allocator();
    }
    // SAFETY: the caller's promise.
    unsafe { get(allocator) }.map(|allocator| allocator.clone())
}

/// The range `start..start + length`, as far as there is one.
fn select(source: &Aggregate, start: usize, length: usize) -> Result<Aggregate, Code> {
    if start as u64 >= source.len() {
        return Err(libc::EINVAL);
    }
    let mut selected = source.clone();
    selected.advance(start as u64);
    drop(selected.split_off(length as u64));
    Ok(selected)
}

/// The ranges of a vector, one behind the other.
///
/// # Safety
/// `ranges` is an array of `count`, of aggregates as [`get`] has them.
pub(super) unsafe fn gathered(ranges: *const Range, count: c_int) -> Result<Aggregate, Code> {
    let count = usize::try_from(count).map_err(|_| libc::EINVAL)?;
    let mut gathered = Aggregate::new();
    for at in 0..count {
        if ranges.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: the array has so many.
        let range = unsafe { &*ranges.add(at) };
        // SAFETY: the caller's promise.
        let source = unsafe { bytes_of(range.aggregate) }?;
        gathered.append(select(source, range.start, range.length)?);
    }
    Ok(gathered)
}

/// Ends an aggregate, as soon as no traversal is open.
///
/// # Safety
/// As [`get`].
pub(super) unsafe fn destroy(aggregate: *mut Agg) -> Result<(), Code> {
    // SAFETY: the caller's promise.
    let agg = unsafe { get(aggregate) }?;
    if agg.is_zombie {
        return Err(libc::EINVAL);
    }
    agg.is_zombie = true;
    if agg.contexts == 0 {
        // SAFETY: it was given to the program as a box, and no traversal refers to it.
        drop(unsafe { Box::from_raw(aggregate) });
    }
    Ok(())
}

macro_rules! functions {
    ($($(#[$attribute:meta])* fn $name:ident($($argument:ident: $kind:ty),*) $body:block)*) => {$(
        $(#[$attribute])*
        ///
        /// # Safety
        /// Pointers are null, or point to what `iolite.h` says.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> Code {
            // SAFETY: each body passes on what the program promises.
            let run = || unsafe { $body };
            code(run())
        }
    )*};
}
pub(super) use functions;

functions! {
    /// A new pool.
    fn IOL_create_allocator(allocator: *mut *mut Allocator, _impl_extra: *mut c_void) {
        give(allocator, Allocator::new().map_err(|error| code_of(&error))?)
    }

    /// Ends a pool; its buffers stay.
    fn IOL_destroy_allocator(allocator: *mut Allocator) {
        get(allocator)?;
        drop(Box::from_raw(allocator));
        Ok(())
    }

    /// A new aggregate, to be written.
    fn IOL_create(allocator: *mut Allocator, aggregate: *mut *mut Agg, size: size_t) {
        let contents = Contents::Blank(allocator_of(allocator)?.create(size), size);
        give(aggregate, Agg { contents, contexts: 0, is_zombie: false })
    }

    /// Ends an aggregate, as soon as no traversal is open.
    fn IOL_destroy(aggregate: *mut Agg) {
        destroy(aggregate)
    }

    /// The bytes of both.
    fn IOL_concat(dst: *mut *mut Agg, src1: *mut Agg, src2: *mut Agg) {
        let mut both = bytes_of(src1)?.clone();
        both.append(bytes_of(src2)?.clone());
        give(dst, both.into())
    }

    /// The first `length` bytes, and the others.
    fn IOL_split(dst1: *mut *mut Agg, dst2: *mut *mut Agg, src: *mut Agg, length: size_t) {
        if dst1.is_null() || dst2.is_null() {
            return Err(libc::EINVAL);
        }
        let mut first = bytes_of(src)?.clone();
        let rest = first.split_off(length as u64);
        give(dst1, first.into())?;
        give(dst2, rest.into())
    }

    /// A range.
    fn IOL_select(dst: *mut *mut Agg, src: *mut Agg, start: size_t, length: size_t) {
        give(dst, select(bytes_of(src)?, start, length)?.into())
    }

    /// Ranges of several.
    fn IOL_create_from_vec(dst: *mut *mut Agg, vec: *const Range, numItems: c_int) {
        give(dst, gathered(vec, numItems)?.into())
    }

    /// The same bytes once more.
    fn IOL_duplicate(dst: *mut *mut Agg, src: *mut Agg) {
        give(dst, bytes_of(src)?.clone().into())
    }
}

/// The number of bytes; 0 for what is destroyed.
///
/// # Safety
/// `src` is null, or an aggregate.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn IOL_length(src: *mut Agg) -> size_t {
    // SAFETY: the program's promise.
    unsafe { get(src) }.map_or(0, |agg| if agg.is_zombie { 0 } else { agg.len() })
}
