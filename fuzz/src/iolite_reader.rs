//! What a writer of references makes of a reader that says anything.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};

use baton_iolite::wire::{self, Found, MARKER_BYTES, Marker, RETURNED_MAX, TO_READER_BYTES, ToReader};
use baton_iolite::{Allocator, Writer};
use baton_pool::{CHUNK_BYTES, View};
use baton_sys::passing;
use rustix::net::{AddressFamily, SendFlags, SocketType};

/// Messages on the channel, behind each of which the writer writes some chunks. In front of each is half its length; 0: the reader
/// says nothing, 255: a message of no bytes. All bytes arrive, and what is lent stays as it is until the reader returns it.
pub fn reader(input: &[u8]) {
    let (from, to) = rustix::pipe::pipe().expect("a pipe");
    let channel = listen(&from).expect("a channel");
    let allocator = Allocator::new().expect("a pool");
    let mut writer = Writer::new(to);
    let mut reading = Reading { from, channel, link: None, lent: HashMap::new(), returned: HashSet::new() };
    let mut rest = input;
    for mark in 1..=STEPS_MAX {
        for _ in 0..WRITES_BETWEEN {
            let mut blank = allocator.create(CHUNK_BYTES);
            blank.parts().for_each(|part| part.fill(mark));
            assert_eq!(writer.write(&blank.freeze()).expect("the pipe is read"), CHUNK_BYTES as u64);
            reading.take(&[mark; CHUNK_BYTES]);
        }
        let Some((&half, behind)) = rest.split_first() else { break };
        let len = if half == u8::MAX { 0 } else { behind.len().min(2 * usize::from(half)) };
        if half > 0 {
            reading.say(&behind[..len]);
        }
        rest = &behind[len..];
    }
}

struct Reading {
    from: OwnedFd,
    channel: OwnedFd,
    /// The writer's connection and its pool, once it has come.
    link: Option<(OwnedFd, View)>,
    /// What it may look at: ids, and places in the pool.
    lent: HashMap<u32, Range<usize>>,
    /// What it has returned, perhaps before it was lent.
    returned: HashSet<u32>,
}

impl Reading {
    /// Takes from the pipe what stands for these bytes.
    fn take(&mut self, expected: &[u8]) {
        let waiting = rustix::io::ioctl_fionread(&self.from).expect("a pipe") as usize;
        let mut bytes = vec![0; waiting];
        assert_eq!(rustix::io::read(&self.from, &mut bytes[..]), Ok(waiting));
        let (mut rest, mut seen) = (&bytes[..], 0);
        while !rest.is_empty() {
            let used = match wire::next(rest, false) {
                Found::Bytes(count) => {
                    assert!(rest[..count] == expected[seen..seen + count], "other bytes");
                    seen += count;
                    count
                }
                Found::Marker(marker) => {
                    seen += self.look(&marker, &expected[seen..]);
                    MARKER_BYTES
                }
                Found::Part => panic!("a marker is torn"),
            };
            rest = &rest[used..];
        }
        assert_eq!(seen, expected.len(), "bytes are lost");
    }

    /// Looks at what a marker refers to; returns its length in bytes.
    fn look(&mut self, marker: &Marker, expected: &[u8]) -> usize {
        let (_, view) = self.link.get_or_insert_with(|| accept(&self.channel).expect("a writer"));
        let mut seen = 0;
        for reference in &marker.references {
            let (start, len) = (reference.offset as usize, reference.len as usize);
            let place = start..start + len;
            assert_eq!(reference.memory, 0, "there is one pool");
            assert!(view.bytes(place.clone()) == &expected[seen..seen + len], "other bytes by reference");
            let is_apart = |other: &Range<usize>| other.end <= place.start || place.end <= other.start;
            assert!(self.lent.values().all(is_apart), "{place:?} is lent already");
            if !self.returned.contains(&reference.id) {
                let other = self.lent.insert(reference.id, place);
                assert_eq!(other, None, "{} is the name of another", reference.id);
            }
            seen += len;
        }
        seen
    }

    /// Sends a message. What it returns may be used again from now on, and all of it if the message is none.
    fn say(&mut self, message: &[u8]) {
        let Some((link, _)) = &self.link else { return };
        let _ = rustix::net::send(link, message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        let heard = &message[..message.len().min(4 * RETURNED_MAX)];
        match wire::returned_from_bytes(heard).filter(|_| !heard.is_empty()) {
            Some(ids) => self.returned.extend(ids),
            None => self.lent.clear(),
        }
        self.lent.retain(|id, _| !self.returned.contains(id));
    }
}

/// Where writers of this pipe look for its reader.
fn listen(from: &OwnedFd) -> std::io::Result<OwnedFd> {
    let stat = rustix::fs::fstat(from)?;
    let name = format!("baton-iolite/{:x}/{:x}", stat.st_dev, stat.st_ino);
    let channel = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)?;
    rustix::net::bind(&channel, &rustix::net::SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    rustix::net::listen(&channel, 1)?;
    Ok(channel)
}

/// The writer's connection, with its greeting and its pool.
fn accept(channel: &OwnedFd) -> std::io::Result<(OwnedFd, View)> {
    let link = rustix::net::accept(channel)?;
    let mut message = [0; TO_READER_BYTES];
    passing::receive(&link, &mut message)?;
    assert!(matches!(ToReader::from_bytes(&message), Some(ToReader::Hello(_))));
    let (_, files) = passing::receive(&link, &mut message)?;
    let Some(ToReader::Pool(bytes)) = ToReader::from_bytes(&message) else { panic!("{message:?}") };
    let view = View::of_pool(files[0].as_fd(), bytes as usize)?;
    Ok((link, view))
}

/// As many as the writer makes before it asks what is returned.
const WRITES_BETWEEN: usize = 8;

/// More chunks than the pool has.
const STEPS_MAX: u8 = 24;
