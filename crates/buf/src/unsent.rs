//! Bytes that were made for a sink, and that it has not taken.

use rustix::io::Errno;

use crate::Sink;

/// What is left to send: nothing, and then it holds no memory, or as much as its owner has made at once.
#[derive(Debug, Default)]
pub struct Unsent(pub Vec<u8>);

impl Unsent {
    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sends what is left; whether that is all. `more`: other bytes follow at once.
    ///
    /// # Errors
    /// The peer is gone.
    pub fn flush(&mut self, sink: &(impl Sink + ?Sized), more: bool) -> Result<bool, Errno> {
        let left = std::mem::take(&mut self.0);
        self.send(sink, &left, more)
    }

    /// Sends bytes, if nothing is left, and keeps those that the sink does not take. It tries once: a sink that takes a part
    /// is full.
    ///
    /// # Errors
    /// The peer is gone.
    pub fn send(&mut self, sink: &(impl Sink + ?Sized), bytes: &[u8], more: bool) -> Result<bool, Errno> {
        debug_assert!(self.is_empty(), "bytes would overtake others");
        if bytes.is_empty() {
            return Ok(true);
        }
        let sent = match sink.send(bytes, more) {
            Ok(sent) => usize::try_from(sent).unwrap_or(usize::MAX),
            Err(Errno::AGAIN) => 0,
            Err(error) => return Err(error),
        };
        self.0 = bytes.get(sent..).unwrap_or_default().to_vec();
        Ok(self.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::MemorySink;

    #[test]
    fn what_a_sink_does_not_take_is_kept() {
        let room = Cell::new(3);
        let sink = MemorySink::new(0, |pieces: &[&[u8]], _| match room.replace(0) {
            0 => Err(Errno::AGAIN),
            room => Ok((pieces[0].len() as u64).min(room)),
        });
        let mut unsent = Unsent::default();
        assert_eq!(unsent.send(&sink, b"hello", false), Ok(false));
        assert_eq!(unsent.flush(&sink, false), Ok(false));
        assert_eq!(unsent.0, b"lo");
        room.set(9);
        assert_eq!((unsent.flush(&sink, false), unsent.0.capacity()), (Ok(true), 0));
        let gone = MemorySink::new(0, |_: &[&[u8]], _| Err(Errno::PIPE));
        assert_eq!(unsent.send(&gone, b"x", false), Err(Errno::PIPE));
    }
}
