//! What arrives on a connection: bytes to read, or bytes of a body that are moved on without being read.
//!
//! An origin's body that has a length is not looked at. If the client takes bytes from a pipe, and enough of the body is
//! still to come, the rest goes from one socket to the other within the kernel (`docs/decisions/0049-bodies-through-pipes.md`).
//! Once the client is slow, what follows is read: it goes to a file, behind what is still in the pipe.

use std::sync::Arc;

use baton_buf::Buffer;
use rustix::io::Errno;

use super::phase::BodyRoute;
use crate::channel::Channel;
use crate::codec::Codec;
use crate::input::{Input, is_full};
use crate::pending_response::PendingResponse;
use crate::spool::Room;
use crate::temporary::TemporaryFiles;

/// What has arrived.
pub(super) enum Arrived {
    /// Bytes, and whether there may be more.
    Bytes { bytes: Buffer, may_be_more: bool },
    /// So many bytes that were moved on.
    Moved(u64),
    /// Perhaps something, but the client has not taken yet what was moved before.
    AfterClient,
    /// The other side has ended the connection.
    End,
}

impl BodyRoute {
    /// Takes what comes next.
    ///
    /// # Errors
    /// `EAGAIN`, `ECONNRESET` and the like.
    pub(super) fn receive(
        &mut self,
        (channel, codec): (&mut Channel, &mut Codec),
        input: &mut Input,
        response: &mut PendingResponse,
        files: &TemporaryFiles,
    ) -> Result<Arrived, Errno> {
        if let Some(moved) = self.splice((channel, codec), input, response, files)? {
            return Ok(moved);
        }
        let bytes = input.read(channel)?;
        // Behind records that were read there may be others that are not opened.
        let may_be_more = is_full(&bytes) || channel.is_secured();
        Ok(if bytes.is_empty() { Arrived::End } else { Arrived::Bytes { bytes, may_be_more } })
    }

    /// Moves bytes of the body on; `None`: what comes next is to be read.
    fn splice(
        &mut self,
        (channel, codec): (&Channel, &mut Codec),
        input: &mut Input,
        response: &mut PendingResponse,
        files: &TemporaryFiles,
    ) -> Result<Option<Arrived>, Errno> {
        if response.is_spooled() {
            self.pipe = None;
            return Ok(None);
        }
        let left = codec.plain_left();
        // What has begun to go this way ends so: changing costs more than the last call.
        let is_enough = if self.pipe.is_some() { left > 0 } else { left >= self.splice_bytes_min };
        if !is_enough || response.room() != Room::Memory {
            return Ok(None);
        }
        let Some(pipe) = self.pipe.take().or_else(|| input.pipe()) else { return Ok(None) };
        let pipe = self.pipe.insert(pipe);
        if !pipe.is_empty() {
            return Ok(Some(Arrived::AfterClient));
        }
        let Some(slice) = Arc::clone(pipe).fill(channel, left)? else { return Ok(Some(Arrived::End)) };
        let moved = slice.len();
        codec.pass(moved);
        response.handle_plain(slice, files);
        Ok(Some(Arrived::Moved(moved)))
    }
}
