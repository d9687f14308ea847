//! What a connection is in the middle of.

use baton_buf::Slice;

use crate::h2::frame::push_frame;
use crate::h2::streams::Slot;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The preface comes first.
    Preface,
    /// Then SETTINGS.
    FirstSettings,
    /// Then frames.
    Open,
    /// The connection has ended with an error: GOAWAY is all that is still sent.
    Failed,
}

/// How far the server has announced that it takes no more requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drain {
    /// Not at all.
    No,
    /// Requests that are on their way are still taken, until this time.
    Announced { until_ms: u64 },
    /// Streams above this one are ignored.
    Final { last: u32 },
}

/// Whether a block must begin with an update of HPACK's table size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableUpdate {
    NotNeeded,
    Due,
    Sent,
}

/// A DATA frame whose head was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataUnderWay {
    pub(super) stream: u32,
    /// Bytes of the body that are still to come.
    pub(super) left: u32,
    /// Bytes of padding behind them.
    pub(super) padding: u32,
    pub(super) ends: bool,
}

/// A header block that lacks its end.
#[derive(Debug)]
pub(super) struct BlockUnderWay {
    pub(super) stream: u32,
    pub(super) ends: bool,
    pub(super) bytes: Vec<u8>,
    pub(super) continuations: u32,
}

/// A header block, or the end of a stream whose body is framed. Leaves before any DATA.
#[derive(Debug)]
pub(super) struct Announcement {
    pub(super) slot: Slot,
    /// `None`: an empty DATA frame ends the stream.
    pub(super) block: Option<Slice>,
    pub(super) ends: bool,
}

/// Frames that wait to be sent in front of all others.
#[derive(Debug, Default)]
pub(super) struct Control {
    bytes: Vec<u8>,
    frames: u32,
}

impl Control {
    pub(super) fn frames(&self) -> u32 {
        self.frames
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All of them were sent.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.frames = 0;
    }

    /// Adds a frame of the connection.
    pub(super) fn push(&mut self, kind: u8, flags: u8, payload: &[u8]) {
        push_frame(self.next(), kind, flags, 0, payload);
    }

    /// Where one more frame is to be written.
    pub(super) fn next(&mut self) -> &mut Vec<u8> {
        self.frames += 1;
        &mut self.bytes
    }
}
