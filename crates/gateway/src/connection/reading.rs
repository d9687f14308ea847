//! Reading answers.

use baton_fcgi::Broken;
use baton_fcgi::response::{Part, ProtocolStatus};
use rustix::io::Errno;

use super::{ActiveTransport, Connection, ConnectionState};
use crate::FailureReason;
use crate::input::{Input, READ_BYTES, Received};
use crate::pending_response::PendingResponse;
use crate::spool::Room;
use crate::temporary::TemporaryFiles;

/// What reading an answer has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// All input has been read.
    Wait,
    /// There may be more input, but other connections come first.
    Yield,
    /// The client has to take something first, within its grace period or without a deadline.
    Full { grace: bool },
    /// The answer is complete; whether the connection can be used again.
    Done { reusable: bool },
    /// The application refused the request without an answer.
    Refused,
    /// The answer is invalid or incomplete.
    Failed(FailureReason),
    /// The connection ended without an answer.
    EndedSilently,
}

impl Connection {
    /// Reads the answer, as far as there is room for it.
    pub(crate) fn read(
        &mut self,
        input: &mut Input,
        response: &mut PendingResponse,
        files: &TemporaryFiles,
    ) -> ReadOutcome {
        let mut turn_bytes = 0;
        while self.readable {
            match response.room() {
                Room::AfterGrace => return ReadOutcome::Full { grace: true },
                Room::None => return ReadOutcome::Full { grace: false },
                Room::Memory | Room::File if turn_bytes >= TURN_BYTES => return ReadOutcome::Yield,
                Room::Memory | Room::File => {}
            }
            let received = match input.read(&self.socket) {
                Ok(received) if received.bytes().is_empty() => return self.end(response),
                Ok(received) => received,
                Err(Errno::AGAIN) => {
                    self.readable = false;
                    break;
                }
                Err(Errno::INTR) => continue,
                // An SCGI application that closes without reading the whole body resets the connection.
                Err(Errno::CONNRESET) if matches!(self.transport, ActiveTransport::Scgi) => {
                    return self.end(response);
                }
                Err(error) => {
                    // A Unix socket is reset if it is closed with unread input.
                    self.was_left_unread = error == Errno::CONNRESET
                        && self.is_local
                        && self.speaks_handover
                        && !self.has_heard
                        && self.outgoing.is_one_message();
                    return self.end_abruptly(response);
                }
            };
            turn_bytes += received.bytes().len();
            (self.is_accepted, self.has_heard) = (true, true);
            let ended = match self.handle_input(&received, response, files) {
                Ok(ended) => ended,
                Err(why) => return ReadOutcome::Failed(why),
            };
            // After a hang-up, read on until the end.
            self.readable = received.is_full() || self.hung_up;
            match ended {
                Some(Ended::Refused) => return ReadOutcome::Refused,
                Some(Ended::Answered { nothing_behind }) => {
                    self.transport = ActiveTransport::Plain;
                    let reusable = self.keeps
                        && nothing_behind
                        && !self.readable
                        && self.outgoing.is_empty()
                        && !self.outgoing.is_open()
                        && self.reader.is_between_records();
                    return ReadOutcome::Done { reusable };
                }
                None => {}
            }
        }
        ReadOutcome::Wait
    }

    fn handle_input(
        &mut self,
        received: &Received<'_>,
        response: &mut PendingResponse,
        files: &TemporaryFiles,
    ) -> Result<Option<Ended>, FailureReason> {
        let bytes = received.bytes();
        if matches!(self.transport, ActiveTransport::Scgi) {
            handle_output(response, received, 0, bytes.len(), files)?;
            return Ok(None);
        }
        let mut at = 0;
        loop {
            let (count, part) = self.reader.read(&bytes[at..])?;
            let start = at;
            at += count;
            match part {
                Part::NeedMore => return Ok(None),
                Part::Stdout(range) => {
                    self.note_output();
                    handle_output(response, received, start + range.start, start + range.end, files)?;
                }
                Part::Stderr(range) => response.handle_stderr(&bytes[start..][range]),
                Part::Slices => {
                    self.handle_slices(response, files)?;
                    self.note_handover();
                }
                Part::Answered(answered) => {
                    self.take_client_back()?;
                    response.handle_answered(answered)?;
                }
                Part::Rest(rest) => {
                    self.take_client_back()?;
                    response.handle_rest(rest)?;
                }
                Part::End { protocol_status: ProtocolStatus::RequestComplete, app_status } => {
                    self.note_output();
                    response.handle_end(app_status)?;
                    return Ok(Some(Ended::Answered { nothing_behind: at == bytes.len() }));
                }
                Part::End { .. } if response.is_silent() => return Ok(Some(Ended::Refused)),
                Part::End { .. } => return Err(FailureReason::Broken(Broken::Order)),
                Part::Values | Part::UnknownType(_) => {}
            }
        }
    }

    /// The application answers through the connection, so it has not used the client's socket if it had it.
    fn note_output(&mut self) {
        if matches!(self.transport, ActiveTransport::PassFd(_)) {
            self.transport = ActiveTransport::Plain;
        }
    }

    fn note_handover(&mut self) {
        (self.speaks_handover, self.took_offer_up) = (true, true);
    }

    /// The application gives the client's socket back.
    fn take_client_back(&mut self) -> Result<(), Broken> {
        match std::mem::replace(&mut self.transport, ActiveTransport::Plain) {
            ActiveTransport::PassFd(_) => {
                self.note_handover();
                Ok(())
            }
            other => {
                self.transport = other;
                Err(Broken::HandOver)
            }
        }
    }

    fn handle_slices(
        &mut self,
        response: &mut PendingResponse,
        files: &TemporaryFiles,
    ) -> Result<(), FailureReason> {
        let Some(region) = self.region.as_mut().filter(|_| matches!(self.transport, ActiveTransport::Shm))
        else {
            return Err(FailureReason::Broken(Broken::HandOver));
        };
        let ConnectionState::Serving { request_id } = self.state else { return Ok(()) };
        for slice in self.reader.slices() {
            let lent = region.lend(request_id, slice).map_err(|_| FailureReason::Broken(Broken::HandOver))?;
            let Some(mut shared) = lent else { continue };
            while response.expects_head() && !shared.is_empty() {
                let mut start = Vec::new();
                shared.copy_prefix_to(HEAD_LOOK_BYTES, &mut start);
                shared.advance(response.handle_head(&start)?.unwrap_or(start.len()));
            }
            if !shared.is_empty() {
                response.handle_body(shared, files)?;
            }
        }
        if response.is_slow() {
            region.move_out();
        }
        Ok(())
    }

    /// The other side has closed the connection.
    fn end(&mut self, response: &mut PendingResponse) -> ReadOutcome {
        match self.transport {
            ActiveTransport::Scgi => match response.handle_end(0) {
                Ok(()) => ReadOutcome::Done { reusable: false },
                Err(_) if response.is_silent() => ReadOutcome::Failed(FailureReason::Ended),
                Err(why) => ReadOutcome::Failed(why),
            },
            _ => self.end_abruptly(response),
        }
    }

    fn end_abruptly(&self, response: &PendingResponse) -> ReadOutcome {
        if response.is_silent() {
            ReadOutcome::EndedSilently
        } else {
            ReadOutcome::Failed(FailureReason::Ended)
        }
    }
}

/// How the records of a request end.
#[derive(Clone, Copy, Debug)]
enum Ended {
    Answered { nothing_behind: bool },
    Refused,
}

/// Passes output on: parses the head, forwards the body as it is.
fn handle_output(
    response: &mut PendingResponse,
    received: &Received<'_>,
    mut start: usize,
    end: usize,
    files: &TemporaryFiles,
) -> Result<(), FailureReason> {
    while response.expects_head() && start < end {
        let look = &received.bytes()[start..end.min(start + HEAD_LOOK_BYTES)];
        start += response.handle_head(look)?.unwrap_or(look.len());
    }
    if start < end {
        response.handle_body(received.slice(start..end), files)?;
    }
    Ok(())
}

/// Bytes to read from one connection before others are served.
const TURN_BYTES: usize = 2 * READ_BYTES;

/// Bytes to copy at a time in search of the end of a head. Nearly all heads are shorter.
const HEAD_LOOK_BYTES: usize = 1_024;
