//! A response between the application and the session: what has been read and not been taken.
//!
//! ```text
//!             ┌ Message ─► [interim heads] ─► head ─► body ─► [trailers] ─┐
//!   Unknown ──┼ Rest ───────────────────────────────► body ───────────────┼─► ending
//!             └ OnClientSocket ───────────────────────────────────────────┘
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use baton_buf::Piece;
use baton_fcgi::cgi::{BadHead, Instruction};
use baton_fcgi::{Answered, Broken, Rest};
use baton_http::origin::{ResponseHead, Trailers};
use baton_shares::ClientKey;

use crate::chosen::Chosen;
use crate::spool::{Bounds, Room, Spool};
use crate::temporary::TemporaryFiles;
use crate::{AnswerTransport, Application, Failure, FailureReason, ResponseEvent, Trail};

/// The part of a response that the session has not taken yet.
#[derive(Debug)]
pub(crate) struct PendingResponse {
    form: ResponseForm,
    interim: VecDeque<ResponseHead>,
    interim_bytes: usize,
    head: Option<ResponseEvent>,
    has_head: bool,
    status: Option<u16>,
    rest: Option<Rest>,
    spool: Spool,
    trailers: Option<Trailers>,
    half_end: bool,
    /// Bytes of the body that have come.
    body_bytes: u64,
    trail: Option<(Arc<Application>, Trail)>,
    /// How the answer has travelled, once it is complete.
    transport: Option<AnswerTransport>,
    /// The head has the server send files.
    names_files: bool,
    /// Which of several origins answers, until the session knows it.
    answering: Option<Arc<Application>>,
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
    /// A head and a body.
    Message,
    /// The rest of an answer that the application began on the client's socket.
    Rest,
    /// The application has answered on the client's socket.
    OnClientSocket(Answered),
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    End { app_status: u32 },
    Answered(Answered),
    Failed { why: FailureReason, client_lost: bool },
}

impl PendingResponse {
    /// An empty response.
    pub(crate) fn new(bounds: Bounds, client: Option<ClientKey>) -> Self {
        Self {
            form: ResponseForm::Unknown,
            interim: VecDeque::new(),
            interim_bytes: 0,
            head: None,
            has_head: false,
            status: None,
            rest: None,
            spool: Spool::new(bounds, client),
            trailers: None,
            half_end: false,
            body_bytes: 0,
            trail: None,
            transport: None,
            names_files: false,
            answering: None,
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

    /// Whether the application answers on the client's socket, at least in part.
    pub(crate) fn is_elsewhere(&self) -> bool {
        matches!(self.form, ResponseForm::Rest | ResponseForm::OnClientSocket(_))
    }

    /// Whether the head has come.
    pub(crate) fn has_head(&self) -> bool {
        self.has_head
    }

    /// Bytes of the body that have come.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// The status of the response, once its head has come.
    pub(crate) fn status(&self) -> Option<u16> {
        self.status
    }

    /// A byte of a head has come.
    pub(crate) fn note_begun(&mut self) {
        if self.is_silent() {
            self.form = ResponseForm::Message;
        }
    }

    /// A head in front of the head: progress, or hints. Beyond a bound they are dropped, which costs the client nothing that
    /// the response itself does not say.
    pub(crate) fn handle_interim(&mut self, head: ResponseHead) {
        self.interim_bytes += head.text().len();
        if self.interim_bytes <= INTERIM_BYTES_MAX {
            self.interim.push_back(head);
        }
    }

    /// The head.
    pub(crate) fn handle_head(&mut self, head: ResponseHead, instruction: Instruction) {
        self.has_head = true;
        self.status = Some(head.status().code());
        self.names_files = !matches!(instruction, Instruction::None | Instruction::LocalRedirect(_));
        self.head = Some(ResponseEvent::Head(head, instruction));
    }

    /// The request gets to its node by another way.
    pub(crate) fn handle_chosen(&mut self, chosen: Box<Chosen>) {
        self.head = Some(ResponseEvent::Chosen(chosen));
    }

    /// The head of a response that switches protocols. The body is the other protocol's from here on.
    pub(crate) fn handle_switch(&mut self, head: ResponseHead) {
        self.has_head = true;
        self.status = Some(head.status().code());
        self.head = Some(ResponseEvent::Switch(head));
        self.hold_in_memory();
    }

    /// The session knows of the switch of protocols.
    pub(crate) fn resume_tunnel(&mut self) {
        (self.form, self.has_head) = (ResponseForm::Message, true);
        self.hold_in_memory();
    }

    /// The fields behind the body.
    pub(crate) fn handle_trailers(&mut self, trailers: Trailers) {
        self.trailers = Some(trailers);
    }

    /// This one of several origins has sent the head.
    pub(crate) fn handle_answering(&mut self, origin: &Arc<Application>) {
        if self.head.is_some() && self.answering.is_none() {
            self.answering = Some(Arc::clone(origin));
        }
    }

    /// The response is over: for the log, how it came.
    pub(crate) fn handle_trail(&mut self, origin: Arc<Application>, trail: Trail) {
        self.trail = Some((origin, trail));
    }

    /// The answer of an application is complete. `transport`: how its bytes came. Returns how the answer has travelled.
    pub(crate) fn handle_travelled(&mut self, transport: AnswerTransport) -> AnswerTransport {
        *self.transport.insert(if self.names_files { AnswerTransport::File } else { transport })
    }

    /// Nothing follows in a tunnel, but the other direction goes on.
    pub(crate) fn handle_half_end(&mut self) {
        self.half_end = true;
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
        self.handle_plain(piece, files);
        Ok(())
    }

    /// Adds bytes of the body of a message.
    pub(crate) fn handle_plain(&mut self, piece: impl Into<Piece>, files: &TemporaryFiles) {
        let piece = piece.into();
        self.body_bytes += piece.len();
        self.spool.push(piece, files);
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
    pub(crate) fn handle_end(&mut self, app_status: u32) {
        self.ending = Some(match self.form {
            ResponseForm::OnClientSocket(answered) => Ending::Answered(answered),
            _ => Ending::End { app_status },
        });
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

    /// Has nothing wait in a file from now on.
    pub(crate) fn hold_in_memory(&mut self) {
        self.spool.hold_in_memory();
    }

    /// Whether the rest goes to a file, as far as there is room: the client is slow.
    pub(crate) fn is_spooled(&self) -> bool {
        self.is_slow() && self.spool.uses_file()
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
            || !self.interim.is_empty()
            || self.head.is_some()
            || self.half_end
            || self.stderr.contains(&b'\n')
    }

    /// Takes the next piece.
    pub(crate) fn take(&mut self) -> Option<ResponseEvent> {
        if let Some(lines) = self.take_lines() {
            return Some(ResponseEvent::Stderr(lines));
        }
        if let Some(interim) = self.interim.pop_front() {
            return Some(ResponseEvent::Interim(interim));
        }
        if self.head.is_some()
            && let Some(origin) = self.answering.take()
        {
            return Some(ResponseEvent::Answering(origin));
        }
        if let Some(head) = self.head.take() {
            return Some(head);
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
        if let Some(trailers) = self.trailers.take() {
            return Some(ResponseEvent::Trailers(trailers));
        }
        if std::mem::take(&mut self.half_end) {
            return Some(ResponseEvent::HalfEnd);
        }
        let ending = self.ending?;
        if let Some((origin, trail)) = self.trail.take() {
            return Some(ResponseEvent::Trail(origin, trail));
        }
        if let Some(transport) = self.transport.take() {
            return Some(ResponseEvent::Travelled(transport));
        }
        Some(match ending {
            Ending::End { app_status } => ResponseEvent::End { app_status },
            Ending::Answered(answered) => ResponseEvent::Answered(answered),
            Ending::Failed { why, client_lost } => {
                ResponseEvent::Failed(Failure { why, client_lost, must_end: self.must_end })
            }
        })
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

/// Most bytes of interim heads per request: a hundred usual ones.
const INTERIM_BYTES_MAX: usize = 64 << 10;

/// Most bytes for the error log per request.
const STDERR_BYTES_MAX: usize = 64 << 10;
