//! Reading answers.

use baton_buf::Buffer;
use baton_fcgi::Broken;
use rustix::io::Errno;

use super::phase::Delivery;
use super::receiving::Arrived;
use super::{Connection, Phase};
use crate::FailureReason;
use crate::codec::{Ended, FastCgi, StreamEnd};
use crate::input::{Input, READ_BYTES};
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
    /// The client has to empty the pipe first, within a longer grace period.
    PipeFull,
    /// The answer is complete; whether the connection can be used again.
    Done { reusable: bool },
    /// The application refused the request without an answer.
    Refused,
    /// The answer is invalid or incomplete.
    Failed(FailureReason),
    /// The connection ended without an answer.
    EndedSilently,
    /// The other side of a tunnel sends no more.
    HalfOver,
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
            let Phase::Serving(serving) = &mut self.phase else { break };
            if serving.halves.input_over {
                break;
            }
            match response.room() {
                Room::AfterGrace if serving.route.holds_piped() => return ReadOutcome::PipeFull,
                Room::AfterGrace => return ReadOutcome::Full { grace: true },
                Room::None => return ReadOutcome::Full { grace: false },
                Room::Memory | Room::File if turn_bytes >= TURN_BYTES => return ReadOutcome::Yield,
                Room::Memory | Room::File => {}
            }
            let (received, count, may_be_more) =
                match serving.route.receive((&mut self.channel, &mut self.codec), input, response, files) {
                    Ok(Arrived::End) => return self.end(response, false),
                    Ok(Arrived::AfterClient) if response.is_slow() => {
                        return ReadOutcome::Full { grace: false };
                    }
                    Ok(Arrived::AfterClient) => return ReadOutcome::PipeFull,
                    // The codec sees whether that was all of the body.
                    Ok(Arrived::Moved(count)) => (Buffer::default(), count as usize, true),
                    Ok(Arrived::Bytes { bytes, may_be_more }) => {
                        let count = bytes.len();
                        (bytes, count, may_be_more)
                    }
                    Err(Errno::AGAIN) => {
                        self.readable = false;
                        break;
                    }
                    Err(Errno::INTR) => continue,
                    Err(error) => return self.end_in_error(error, response),
                };
            turn_bytes += count;
            serving.delivery.note_heard();
            self.note_accepted();
            let ended = match self.codec.read(&received, response, files) {
                Ok(ended) => ended,
                Err(why) => return ReadOutcome::Failed(why),
            };
            if self.fastcgi().is_some_and(FastCgi::begins_to_take_bodies) {
                self.send_queue.refer();
                self.application.open_chunks();
            }
            let freed = self.fastcgi().map_or(0, FastCgi::take_freed);
            if self.send_queue.take_back(freed).is_err() {
                return ReadOutcome::Failed(FailureReason::Broken(Broken::HandOver));
            }
            // After a hang-up, read on until the end.
            self.readable = may_be_more || self.hung_up;
            match ended {
                Some(Ended::Refused) => return ReadOutcome::Refused,
                Some(Ended::Answered { may_follow }) => {
                    self.send_queue.take_all_back();
                    let is_quiet = match may_be_more {
                        true => !self.hung_up && !self.channel.has_stray_input(),
                        false => !self.readable,
                    };
                    let keeps = self.serving_mut().is_some_and(|serving| {
                        serving.route.pipe = None;
                        serving.keeps
                    });
                    let reusable = keeps
                        && may_follow
                        && is_quiet
                        && self.send_queue.is_empty()
                        && !self.send_queue.is_open();
                    return ReadOutcome::Done { reusable };
                }
                None => {}
            }
        }
        ReadOutcome::Wait
    }

    /// The connection has failed.
    fn end_in_error(&mut self, error: Errno, response: &mut PendingResponse) -> ReadOutcome {
        // A Unix socket is reset if it is closed with unread input.
        let may_be_unread = error == Errno::CONNRESET && self.other_end.is_local && self.speaks_passfd();
        if may_be_unread
            && self.send_queue.is_one_message()
            && let Some(serving) = self.serving_mut()
            && serving.delivery == Delivery::Sent
        {
            serving.delivery = Delivery::LeftUnread;
        }
        // Under TLS, this is also an end without a word: what has arrived may have been cut.
        let is_cut = self.channel.is_secured() || error != Errno::CONNRESET;
        if is_cut { self.outcome_of(StreamEnd::abrupt(response)) } else { self.end(response, true) }
    }

    /// The other side has closed the connection.
    fn end(&mut self, response: &mut PendingResponse, is_reset: bool) -> ReadOutcome {
        let end = self.codec.handle_end(response, is_reset);
        self.outcome_of(end)
    }

    fn outcome_of(&mut self, end: StreamEnd) -> ReadOutcome {
        match end {
            StreamEnd::Complete => ReadOutcome::Done { reusable: false },
            StreamEnd::Silent => ReadOutcome::EndedSilently,
            StreamEnd::Failed(why) => ReadOutcome::Failed(why),
            StreamEnd::Half => {
                if let Some(serving) = self.serving_mut() {
                    serving.halves.input_over = true;
                }
                ReadOutcome::HalfOver
            }
        }
    }
}

/// Bytes to read from one connection before others are served.
const TURN_BYTES: usize = 2 * READ_BYTES;
