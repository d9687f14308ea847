//! Reading and writing.

use std::os::fd::BorrowedFd;
use std::sync::PoisonError;

use baton_buf::Aggregate;
use libc::{c_int, c_void, off_t, size_t};

use super::aggregates::{Agg, Range, bytes_of, destroy, functions, gathered};
use super::process::{Known, default_allocator, forget, known};
use super::{Code, code, code_of, get, give, put};
use crate::Reader;
use crate::memory::{is_in_memory, look};

/// At most `bytes_max` bytes from a descriptor.
pub(super) fn read(descriptor: c_int, bytes_max: usize) -> Result<Aggregate, Code> {
    with_reader(descriptor, |reader| reader.read(bytes_max).map_err(|error| code_of(&error)))
}

/// Writes to a descriptor; returns how many bytes.
pub(super) fn write(descriptor: c_int, aggregate: &Aggregate) -> Result<usize, Code> {
    let Known { writer, .. } = known(descriptor)?;
    let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
    writer.write(aggregate).map(|count| count as usize).map_err(|error| code_of(&error))
}

/// Brings ranges of files into memory, of the standard pool.
pub(super) fn look_at(aggregate: &mut Aggregate) -> Result<(), Code> {
    if is_in_memory(aggregate) {
        return Ok(());
    }
    look(aggregate, &default_allocator()?).map_err(|error| code_of(&error))
}

fn with_reader<R>(
    descriptor: c_int,
    run: impl FnOnce(&mut Reader<BorrowedFd<'static>>) -> Result<R, Code>,
) -> Result<R, Code> {
    let Known { reader, writer, .. } = known(descriptor)?;
    let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *reader {
        Some(reader) => run(reader),
        none => {
            let borrowed = *writer.lock().unwrap_or_else(PoisonError::into_inner).descriptor();
            let reader = Reader::new(borrowed, &default_allocator()?).map_err(|error| code_of(&error))?;
            run(none.insert(reader))
        }
    }
}

functions! {
    /// Reads at most `size` bytes.
    fn IOL_read(fd: c_int, aggregate: *mut *mut Agg, size: size_t, retSize: *mut size_t) {
        if aggregate.is_null() || retSize.is_null() {
            return Err(libc::EINVAL);
        }
        let read = read(fd, size)?;
        put(retSize, read.len() as usize)?;
        give(aggregate, read.into())
    }

    /// Writes an aggregate.
    fn IOL_write(fd: c_int, aggregate: *mut Agg, retSize: *mut size_t) {
        put(retSize, 0)?;
        put(retSize, write(fd, bytes_of(aggregate)?)?)
    }

    /// Writes an aggregate, and ends it if all of it was written.
    fn IOL_write_destroy(fd: c_int, aggregate: *mut *mut Agg, retSize: *mut size_t) {
        put(retSize, 0)?;
        let agg = *get(aggregate)?;
        let written = write(fd, bytes_of(agg)?)?;
        put(retSize, written)?;
        if written == get(agg)?.len() {
            destroy(agg)?;
            put(aggregate, std::ptr::null_mut())?;
        }
        Ok(())
    }

    /// Writes ranges of aggregates.
    fn IOL_write_vec(fd: c_int, vec: *const Range, numItems: c_int, retSize: *mut size_t) {
        put(retSize, 0)?;
        put(retSize, write(fd, &gathered(vec, numItems)?)?)
    }

    /// `mmap`.
    fn IOL_mmap(addr: *mut *mut c_void, len: size_t, prot: c_int, flags: c_int, fd: c_int, off: size_t) {
        let wanted = *get(addr)?;
        match libc::mmap(wanted, len, prot, flags, fd, off as off_t) {
            libc::MAP_FAILED => Err(code_of(&std::io::Error::last_os_error())),
            start => put(addr, start),
        }
    }

    /// `close`, after forgetting the descriptor.
    fn IOL_close(fd: c_int) {
        forget(fd)?;
        match libc::close(fd) {
            0 => Ok(()),
            _ => Err(code_of(&std::io::Error::last_os_error())),
        }
    }
}

/// Options of a descriptor.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn IOL_control(fd: c_int, flags: c_int) -> Code {
    code(if flags == IOL_BYTES { refuse_references(fd) } else { Err(libc::EINVAL) })
}

fn refuse_references(descriptor: c_int) -> Result<(), Code> {
    let Known { writer, .. } = known(descriptor)?;
    writer.lock().unwrap_or_else(PoisonError::into_inner).refuse_references();
    with_reader(descriptor, |reader| {
        reader.refuse_references();
        Ok(())
    })
}

const IOL_BYTES: c_int = 1;
