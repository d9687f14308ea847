//! A response between the application and the session: what has been read and not been taken.
//!
//! ```text
//!             ┌ Cgi ─► head ─► body ─┐
//!   Unknown ──┼ Rest ────────► body ─┼─► ending
//!             └ OnClientSocket ──────┘
//! ```

use baton_buf::Piece;
use baton_fcgi::cgi::{BadHead, CgiHead, HeadReader, HeadStep};
use baton_fcgi::{Answered, Broken, Rest};

use crate::spool::{Bounds, Room, Spool};
use crate::temporary::TemporaryFiles;
use crate::{Failure, FailureReason, ResponseEvent};

/// The part of a response that the session has not taken yet.
#[derive(Debug)]
pub(crate) struct PendingResponse {
    form: ResponseForm,
    head: Head,
    rest: Option<Rest>,
    spool: Spool,
    stderr: Vec<u8>,
    stderr_bytes: usize,
    /// The application may hold an unused copy of the client's socket.
    must_end: bool,
    ending: Option<Ending>,
}

/// In which form the application answers.
#[derive(Clone, Copy, Debug)]
enum ResponseForm {
    /// Nothing has come yet.
    Unknown,
    /// A CGI response, head and body.
    Cgi,
    /// The rest of an answer that the application began on the client's socket.
    Rest,
    /// The application has answered on the client's socket.
    OnClientSocket(Answered),
}

#[derive(Debug)]
enum Head {
    Reading(HeadReader),
    Ready(CgiHead),
    Taken,
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    End { app_status: u32 },
    Answered(Answered),
    Failed { why: FailureReason, client_lost: bool },
}

impl PendingResponse {
    /// An empty response. `memory` is reused for the head.
    pub(crate) fn new(bounds: Bounds, memory: Vec<u8>) -> Self {
        Self {
            form: ResponseForm::Unknown,
            head: Head::Reading(HeadReader::with_buffer(memory)),
            rest: None,
            spool: Spool::new(bounds),
            stderr: Vec::new(),
            stderr_bytes: 0,
            must_end: false,
            ending: None,
        }
    }

    /// Whether the application has sent nothing, not even that it answers on the client's socket.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self.form, ResponseForm::Unknown)
    }

    /// Whether the next bytes belong to the head, which has to be parsed.
    pub(crate) fn expects_head(&self) -> bool {
        matches!((&self.form, &self.head), (ResponseForm::Unknown | ResponseForm::Cgi, Head::Reading(_)))
    }

    /// Parses bytes of the head. Returns where in them the body begins, if the head ends within them.
    ///
    /// # Errors
    /// The head is invalid.
    pub(crate) fn handle_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, BadHead> {
        self.form = ResponseForm::Cgi;
        let Head::Reading(reader) = &mut self.head else { return Ok(Some(0)) };
        match reader.read(bytes)? {
            HeadStep::NeedMore => Ok(None),
            HeadStep::End { body_at } => {
                self.finish_head()?;
                Ok(Some(body_at))
            }
        }
    }

    /// Adds bytes of the body, or of the rest.
    ///
    /// # Errors
    /// [`Broken::Order`] if the application has already reported its answer as complete.
    pub(crate) fn handle_body(
        &mut self,
        piece: impl Into<Piece>,
        files: &TemporaryFiles,
    ) -> Result<(), Broken> {
        if matches!(self.form, ResponseForm::OnClientSocket(_)) {
            return Err(Broken::Order);
        }
        self.spool.push(piece, files);
        Ok(())
    }

    /// The application has begun to answer on the client's socket, and gives the rest back.
    ///
    /// # Errors
    /// [`Broken::Order`] if it had begun to answer in another form.
    pub(crate) fn handle_rest(&mut self, rest: Rest) -> Result<(), Broken> {
        if !self.is_silent() {
            return Err(Broken::Order);
        }
        self.form = ResponseForm::Rest;
        self.rest = Some(rest);
        Ok(())
    }

    /// The application reports its answer on the client's socket.
    ///
    /// # Errors
    /// [`Broken::Order`] if it had begun to answer in another form.
    pub(crate) fn handle_answered(&mut self, answered: Answered) -> Result<(), Broken> {
        if !self.is_silent() {
            return Err(Broken::Order);
        }
        self.form = ResponseForm::OnClientSocket(answered);
        Ok(())
    }

    /// Adds bytes for the error log, up to a bound; more is dropped.
    pub(crate) fn handle_stderr(&mut self, bytes: &[u8]) {
        let room = STDERR_BYTES_MAX - self.stderr_bytes;
        let bytes = &bytes[..bytes.len().min(room)];
        self.stderr_bytes += bytes.len();
        self.stderr.extend_from_slice(bytes);
    }

    /// The response is complete.
    ///
    /// # Errors
    /// [`FailureReason::BadHead`] if the head is incomplete.
    pub(crate) fn handle_end(&mut self, app_status: u32) -> Result<(), FailureReason> {
        if self.expects_head() {
            self.finish_head().map_err(FailureReason::BadHead)?;
        }
        self.ending = Some(match self.form {
            ResponseForm::OnClientSocket(answered) => Ending::Answered(answered),
            _ => Ending::End { app_status },
        });
        Ok(())
    }

    /// The response ends here, incomplete.
    pub(crate) fn fail(&mut self, why: FailureReason, client_lost: bool) {
        self.ending = Some(Ending::Failed { why, client_lost });
    }

    /// Ends the connection behind the response: the application may hold an unused copy of the client's socket.
    pub(crate) fn note_must_end(&mut self) {
        self.must_end = true;
    }

    /// Whether the application will send no more.
    pub(crate) fn is_over(&self) -> bool {
        self.ending.is_some()
    }

    /// Where the next bytes would go.
    pub(crate) fn room(&self) -> Room {
        self.spool.room()
    }

    /// The client has taken nothing in its grace period.
    pub(crate) fn mark_slow(&mut self, files: &TemporaryFiles) {
        self.spool.mark_slow(files);
    }

    /// Whether the client was found to be slow.
    pub(crate) fn is_slow(&self) -> bool {
        self.spool.is_slow()
    }

    /// The session has sent everything it took.
    pub(crate) fn note_sent(&mut self) {
        self.spool.note_sent();
    }

    /// Whether there is something to take, now or after [`note_sent`](Self::note_sent).
    pub(crate) fn has_event(&self) -> bool {
        self.is_over()
            || !self.spool.is_empty()
            || self.rest.is_some()
            || matches!(self.head, Head::Ready(_))
            || self.stderr.contains(&b'\n')
    }

    /// Takes the next piece.
    pub(crate) fn take(&mut self) -> Option<ResponseEvent> {
        if let Some(lines) = self.take_lines() {
            return Some(ResponseEvent::Stderr(lines));
        }
        if let Head::Ready(_) = self.head
            && let Head::Ready(head) = std::mem::replace(&mut self.head, Head::Taken)
        {
            return Some(ResponseEvent::Head(head));
        }
        if let Some(rest) = self.rest.take() {
            return Some(ResponseEvent::Rest(rest));
        }
        if let Some(body) = self.spool.take() {
            return Some(ResponseEvent::Body(body));
        }
        if !self.spool.is_empty() {
            return None;
        }
        Some(match self.ending? {
            Ending::End { app_status } => ResponseEvent::End { app_status },
            Ending::Answered(answered) => ResponseEvent::Answered(answered),
            Ending::Failed { why, client_lost } => {
                ResponseEvent::Failed(Failure { why, client_lost, must_end: self.must_end })
            }
        })
    }

    fn finish_head(&mut self) -> Result<(), BadHead> {
        if let Head::Reading(reader) = std::mem::replace(&mut self.head, Head::Taken) {
            self.head = Head::Ready(reader.finish()?);
        }
        Ok(())
    }

    fn take_lines(&mut self) -> Option<Vec<u8>> {
        if self.stderr.is_empty() {
            return None;
        }
        if self.is_over() {
            let mut all = std::mem::take(&mut self.stderr);
            if !all.ends_with(b"\n") {
                all.push(b'\n');
            }
            return Some(all);
        }
        let end = self.stderr.iter().rposition(|byte| *byte == b'\n')? + 1;
        let partial = self.stderr.split_off(end);
        Some(std::mem::replace(&mut self.stderr, partial))
    }
}

impl From<Broken> for FailureReason {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

impl From<BadHead> for FailureReason {
    fn from(bad: BadHead) -> Self {
        Self::BadHead(bad)
    }
}

/// Most bytes for the error log per request.
const STDERR_BYTES_MAX: usize = 64 << 10;
