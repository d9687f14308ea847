//! SCGI: a connection for each request, whose end is the end of the response.

use baton_buf::Buffer;

use super::cgi_output::CgiOutput;
use super::turn::{Ended, StreamEnd, Turn};
use crate::FailureReason;
use crate::pending_response::PendingResponse;
use crate::send_queue::SendQueue;
use crate::temporary::TemporaryFiles;

/// SCGI on a connection.
#[derive(Debug, Default)]
pub(crate) struct Scgi {
    output: CgiOutput,
}

impl Scgi {
    pub(super) fn begin(&mut self, turn: Turn<'_>, send_queue: &mut SendQueue) -> Result<(), FailureReason> {
        self.output = CgiOutput::begin(turn.request, turn.memory);
        send_queue.push_scgi(turn.request).map_err(FailureReason::BadRequest)
    }

    pub(super) fn read(
        &mut self,
        received: &Buffer,
        response: &mut PendingResponse,
        files: &TemporaryFiles,
    ) -> Result<Option<Ended>, FailureReason> {
        self.output.take(response, received, 0, received.len(), files)?;
        Ok(None)
    }

    pub(super) fn handle_end(&mut self, response: &mut PendingResponse) -> StreamEnd {
        match self.output.finish(response) {
            Ok(()) => {
                response.handle_end(0);
                StreamEnd::Complete
            }
            Err(_) if response.is_silent() => StreamEnd::Failed(FailureReason::Ended),
            Err(bad) => StreamEnd::Failed(FailureReason::BadHead(bad)),
        }
    }
}
