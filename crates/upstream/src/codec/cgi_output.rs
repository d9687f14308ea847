//! The output of an application, as CGI has it: a head, and a body behind it (RFC 3875 section 6).

use baton_buf::{Buffer, SharedSlice};
use baton_fcgi::cgi::{BadHead, CgiHead, HeadReader, HeadStep, is_kept_back};
use baton_http::Status;
use baton_http::origin::ResponseHead;

use crate::pending_response::PendingResponse;
use crate::temporary::TemporaryFiles;
use crate::{FailureReason, Request};

/// Where in the output of an application a connection is.
#[derive(Debug, Default)]
pub(super) enum CgiOutput {
    /// In front of the head, or in it.
    Head(HeadReader),
    #[default]
    Body,
}

impl CgiOutput {
    /// The output of the next request. Its memory is reused for the head.
    pub(super) fn begin(request: &Request, memory: Vec<u8>) -> Self {
        Self::Head(HeadReader::with_buffer(memory, request.application.settings().head_bytes_max))
    }

    /// Takes a part of what was received: parses the head, passes the body on as it is.
    ///
    /// # Errors
    /// The head is invalid, or there must not be any output.
    pub(super) fn take(
        &mut self,
        response: &mut PendingResponse,
        received: &Buffer,
        mut start: usize,
        end: usize,
        files: &TemporaryFiles,
    ) -> Result<(), FailureReason> {
        while self.expects_head(response) && start < end {
            let look = &received[start..end.min(start + HEAD_LOOK_BYTES)];
            start += self.read_head(response, look)?.unwrap_or(look.len());
        }
        if start < end {
            response.handle_body(received.slice(start, end), files)?;
        }
        Ok(())
    }

    /// Takes a part of the output in memory that is shared with the application.
    ///
    /// # Errors
    /// As above.
    pub(super) fn take_shared(
        &mut self,
        response: &mut PendingResponse,
        mut shared: SharedSlice,
        files: &TemporaryFiles,
    ) -> Result<(), FailureReason> {
        while self.expects_head(response) && !shared.is_empty() {
            let mut start = Vec::new();
            shared.copy_prefix_to(HEAD_LOOK_BYTES, &mut start);
            shared.advance(self.read_head(response, &start)?.unwrap_or(start.len()));
        }
        if !shared.is_empty() {
            response.handle_body(shared, files)?;
        }
        Ok(())
    }

    /// The output is complete.
    ///
    /// # Errors
    /// It has ended in front of the body.
    pub(super) fn finish(&mut self, response: &mut PendingResponse) -> Result<(), BadHead> {
        if self.expects_head(response) { self.finish_head(response) } else { Ok(()) }
    }

    /// Whether the next bytes belong to the head, which has to be parsed.
    fn expects_head(&self, response: &PendingResponse) -> bool {
        matches!(self, Self::Head(_)) && !response.is_elsewhere()
    }

    /// Parses bytes of the head. Returns where in them the body begins, if the head ends within them.
    fn read_head(&mut self, response: &mut PendingResponse, bytes: &[u8]) -> Result<Option<usize>, BadHead> {
        response.note_begun();
        let Self::Head(reader) = self else { return Ok(Some(0)) };
        match reader.read(bytes)? {
            HeadStep::NeedMore => Ok(None),
            HeadStep::End { body_at } => {
                self.finish_head(response)?;
                Ok(Some(body_at))
            }
        }
    }

    fn finish_head(&mut self, response: &mut PendingResponse) -> Result<(), BadHead> {
        if let Self::Head(reader) = std::mem::take(self) {
            let head = reader.finish()?;
            let (status, length) = (Status::new(head.status()), head.content_length());
            let reason = ResponseHead::phrase(status, head.reason());
            let (lines, instruction) = CgiHead::into_parts(head);
            let head = ResponseHead::of_lines(lines, status, reason, length, |name| !is_kept_back(name));
            response.handle_head(head, instruction);
        }
        Ok(())
    }
}

/// Bytes to copy at a time in search of the end of a head. Nearly all heads are shorter.
const HEAD_LOOK_BYTES: usize = 1_024;
