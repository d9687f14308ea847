//! Ranges of files: what becomes of them when a program looks at them, and when their file changes.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, Write};
use std::os::unix::fs::FileExt;

use baton_iolite::{Aggregate, Allocator, Reader, Writer, look};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;

use crate::ends::ends;
use crate::hostile::bytes_of;

/// Longer than a chunk, and no multiple of a page.
const BYTES: usize = 100_001;

/// A file of so many bytes `f`, read from its beginning on.
fn ranges(mut file: File, allocator: &Allocator) -> (File, Reader<File>) {
    file.write_all(&[b'f'; BYTES]).unwrap();
    file.rewind().unwrap();
    let reader = Reader::new(file.try_clone().unwrap(), allocator).unwrap();
    (file, reader)
}

/// What the calls of this thread have read, in bytes.
fn bytes_read() -> usize {
    let io = fs::read_to_string("/proc/thread-self/io").unwrap();
    io.lines().next().and_then(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

/// Bytes that a look at all of `aggregate` has read.
fn read_by_look(aggregate: &mut Aggregate, allocator: &Allocator) -> usize {
    let before = bytes_read();
    look(aggregate, allocator).unwrap();
    bytes_read() - before
}

/// Goal: bytes that were looked at stay, whatever is stored to their file, and a range of a file that was cut off is an error, not the
/// end of the process. Method: before the look, behind it, and at the other end of a pipe.
#[test]
fn what_was_looked_at_stays() {
    let allocator = Allocator::new().unwrap();
    let (file, mut reader) = ranges(tempfile::tempfile().unwrap(), &allocator);
    let [mut first, mut second, third] = [0; 3].map(|_| reader.read(30_000).unwrap());
    let (mut other_end, mut writer) = ends(&allocator);
    assert_eq!(writer.write(&third).unwrap(), 30_000);
    let mut passed_on = other_end.read(1 << 20).unwrap();
    look(&mut first, &allocator).unwrap();
    file.write_all_at(&[b'x'; BYTES], 0).unwrap();
    file.set_len(1).unwrap();
    for range in [&mut second, &mut passed_on] {
        let error = look(range, &allocator).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::IO.raw_os_error()), "{error}");
    }
    assert!(bytes_of(first) == [b'f'; 30_000]);
    file.write_all_at(&[b'n'; BYTES], 0).unwrap();
    assert!(bytes_of(second) == [b'n'; 30_000], "a look that failed leaves the range");
}

/// Goal: a file that nothing can change is mapped, any other read once. Method: the kernel counts what is read.
#[test]
fn sealed_files_are_mapped() {
    let allocator = Allocator::new().unwrap();
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = || File::from(rustix::fs::memfd_create("sealed", flags).unwrap());
    for (seals, is_mapped) in [
        (SealFlags::empty(), false),
        (SealFlags::SHRINK, false),
        (SealFlags::WRITE, false),
        (SealFlags::SHRINK | SealFlags::WRITE, true),
    ] {
        let (file, mut reader) = ranges(memory(), &allocator);
        rustix::fs::fcntl_add_seals(&file, seals).unwrap();
        let _front = reader.read(10_001).unwrap();
        let mut range = reader.read(BYTES).unwrap();
        let read = read_by_look(&mut range, &allocator);
        let expected = if is_mapped { 0..1_000 } else { BYTES - 10_001..BYTES };
        assert!(expected.contains(&read), "{seals:?}: {read} bytes were read");
        assert_eq!(read_by_look(&mut range, &allocator) / 1_000, 0, "once");
        assert!(bytes_of(range) == [b'f'; BYTES - 10_001]);
    }
}

/// Goal: ranges get to a file that is open for appending, to which the kernel sends nothing.
#[test]
fn ranges_are_appended() {
    let allocator = Allocator::new().unwrap();
    let (_file, mut reader) = ranges(tempfile::tempfile().unwrap(), &allocator);
    let to = tempfile::NamedTempFile::new().unwrap();
    fs::write(to.path(), "before").unwrap();
    let appended = OpenOptions::new().append(true).open(to.path()).unwrap();
    let range = reader.read(BYTES).unwrap();
    assert_eq!(Writer::new(appended).write(&range).unwrap(), BYTES as u64);
    assert!(fs::read(to.path()).unwrap() == [&b"before"[..], &[b'f'; BYTES]].concat());
}
