//! FastCGI, and the hand-over protocol on it: a response comes through the connection, through shared memory, or goes to
//! the client's own socket.

use baton_buf::Buffer;
use baton_fcgi::Broken;
use baton_fcgi::record::MANAGEMENT_ID;
use baton_fcgi::request;
use baton_fcgi::response::{Part, ProtocolStatus, ResponseReader};

use super::cgi_output::CgiOutput;
use super::turn::{Ended, OfferOutcome, OfferedTransport, Turn};
use crate::body_references::BodyReferences;
use crate::passfd::PassedSocket;
use crate::pending_response::PendingResponse;
use crate::send_queue::{Descriptor, Descriptors, SendQueue};
use crate::shm::SharedRegion;
use crate::temporary::TemporaryFiles;
use crate::{AnswerTransport, FailureReason, RequestId};

/// FastCGI on a connection.
#[derive(Debug)]
pub(crate) struct FastCgi {
    reader: ResponseReader,
    output: CgiOutput,
    transport: ActiveTransport,
    region: Option<SharedRegion>,
    id: u16,
    request_id: Option<RequestId>,
    offered: OfferedTransport,
    outcome: OfferOutcome,
    /// The application has used the hand-over protocol on this connection.
    speaks_passfd: bool,
    /// It takes bodies by reference on this connection.
    takes_bodies: bool,
    begins_to_take: bool,
    /// Bytes of bodies that it has returned since the last [`take_freed`](Self::take_freed).
    freed: u64,
}

/// The transport of the current request's answer.
#[derive(Debug)]
enum ActiveTransport {
    Plain,
    Shm,
    PassFd(PassedSocket),
}

impl Default for FastCgi {
    fn default() -> Self {
        Self {
            reader: ResponseReader::new(MANAGEMENT_ID),
            output: CgiOutput::default(),
            transport: ActiveTransport::Plain,
            region: None,
            id: 0,
            request_id: None,
            offered: OfferedTransport::Nothing,
            outcome: OfferOutcome::Ignored,
            speaks_passfd: false,
            takes_bodies: false,
            begins_to_take: false,
            freed: 0,
        }
    }
}

impl FastCgi {
    pub(super) fn begin(&mut self, turn: Turn<'_>, send_queue: &mut SendQueue) {
        let Turn { request, offered, block, patience_ms, .. } = turn;
        self.output = CgiOutput::begin(request, turn.memory);
        self.request_id = Some(turn.request_id);
        (self.offered, self.outcome) = (offered, OfferOutcome::Ignored);
        // Alternates, so that late records of the previous request are never taken for those of this one.
        self.id = if self.id == 1 { 2 } else { 1 };
        self.reader.begin(self.id);
        block.clear();
        self.transport = ActiveTransport::Plain;
        let references = match offered {
            OfferedTransport::Nothing => BodyReferences::default(),
            _ => BodyReferences::of(request, send_queue.pool(), self.takes_bodies),
        };
        let words = references.words();
        let mut descriptors = Descriptors::new();
        match (offered, &request.pass) {
            (OfferedTransport::PassFd, Some(pass)) => {
                let handed = PassedSocket::offer(pass, patience_ms, words, block);
                descriptors.push(Descriptor::Client(handed.client()));
                self.transport = ActiveTransport::PassFd(handed);
            }
            (OfferedTransport::Shm, _) => {
                if self.region.is_none() {
                    // Without a region (no memory, no descriptors) the answer comes through the socket.
                    let bytes = request.application.settings().region_bytes;
                    self.region = SharedRegion::create(bytes).ok();
                }
                if let Some(region) = &mut self.region {
                    descriptors.extend(region.offer(patience_ms, words, block).map(Descriptor::Own));
                    self.transport = ActiveTransport::Shm;
                }
            }
            _ => {}
        }
        let has_offer = !block.is_empty();
        let block = if has_offer {
            block.extend_from_slice(&request.text);
            &*block
        } else {
            &request.text
        };
        let splits = turn.shows_acceptance && turn.keeps;
        send_queue.push_fastcgi(self.id, turn.keeps, block, splits, request);
        if has_offer {
            send_queue.attach(descriptors, references);
        }
    }

    pub(super) fn read(
        &mut self,
        received: &Buffer,
        response: &mut PendingResponse,
        files: &TemporaryFiles,
    ) -> Result<Option<Ended>, FailureReason> {
        let mut at = 0;
        loop {
            let (count, part) = self.reader.read(&received[at..])?;
            let start = at;
            at += count;
            match part {
                Part::NeedMore => return Ok(None),
                Part::Stdout(range) => {
                    self.note_output();
                    self.output.take(response, received, start + range.start, start + range.end, files)?;
                }
                Part::Stderr(range) => response.handle_stderr(&received[start..][range]),
                Part::Slices => {
                    self.handle_slices(response, files)?;
                    self.note_passfd();
                }
                Part::Answered(answered) => {
                    self.take_client_back()?;
                    response.handle_answered(answered)?;
                }
                Part::Rest(rest) => {
                    self.take_client_back()?;
                    response.handle_rest(rest)?;
                }
                Part::Declined(why) => {
                    if self.offered != OfferedTransport::PassFd {
                        return Err(FailureReason::Broken(Broken::HandOver));
                    }
                    self.note_output();
                    (self.speaks_passfd, self.outcome) = (true, OfferOutcome::Declined(why));
                }
                Part::TakesBodies => (self.takes_bodies, self.begins_to_take) = (true, true),
                Part::Freed(bytes) => self.freed += u64::from(bytes),
                Part::End { protocol_status: ProtocolStatus::RequestComplete, app_status } => {
                    self.note_output();
                    self.output.finish(response)?;
                    response.handle_end(app_status);
                    self.transport = ActiveTransport::Plain;
                    let may_follow = at == received.len() && self.reader.is_between_records();
                    return Ok(Some(Ended::Answered { may_follow }));
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

    fn note_passfd(&mut self) {
        (self.speaks_passfd, self.outcome) = (true, OfferOutcome::TakenUp);
    }

    /// The application gives the client's socket back.
    fn take_client_back(&mut self) -> Result<(), Broken> {
        match std::mem::replace(&mut self.transport, ActiveTransport::Plain) {
            ActiveTransport::PassFd(_) => {
                self.note_passfd();
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
        let Some(request_id) = self.request_id else { return Ok(()) };
        for slice in self.reader.slices() {
            let lent = region.lend(request_id, slice).map_err(|_| FailureReason::Broken(Broken::HandOver))?;
            if let Some(shared) = lent {
                self.output.take_shared(response, shared, files)?;
            }
        }
        if response.is_slow() {
            region.move_out();
        }
        Ok(())
    }

    /// The transport offered with the current request, and what became of that.
    pub(crate) fn offer(&self) -> (OfferedTransport, OfferOutcome) {
        (self.offered, self.outcome)
    }

    /// How the answer has travelled; `None`: as without an offer.
    pub(super) fn travelled(&self) -> Option<AnswerTransport> {
        match (self.offered, self.outcome) {
            (OfferedTransport::PassFd, OfferOutcome::TakenUp) => Some(AnswerTransport::PassFd),
            (OfferedTransport::PassFd, OfferOutcome::Declined(why)) => Some(why.into()),
            (OfferedTransport::PassFd, OfferOutcome::Ignored) => Some(AnswerTransport::Declined),
            (OfferedTransport::Shm, OfferOutcome::TakenUp) => Some(AnswerTransport::Shm),
            (OfferedTransport::Shm | OfferedTransport::Nothing, _) => None,
        }
    }

    /// Whether the application has used the hand-over protocol on this connection.
    pub(crate) fn speaks_passfd(&self) -> bool {
        self.speaks_passfd
    }

    /// Whether the application has said since the last call that it takes bodies by reference.
    pub(crate) fn begins_to_take_bodies(&mut self) -> bool {
        std::mem::take(&mut self.begins_to_take)
    }

    /// Bytes of the body that the application has returned since the last call.
    pub(crate) fn take_freed(&mut self) -> u64 {
        std::mem::take(&mut self.freed)
    }

    /// The client's socket, if it goes with the current request.
    pub(crate) fn passed(&mut self) -> Option<&mut PassedSocket> {
        match &mut self.transport {
            ActiveTransport::PassFd(handed) => Some(handed),
            _ => None,
        }
    }

    /// Queues an order to give the client's socket back, if the application has it.
    pub(crate) fn push_give_back(&mut self, send_queue: &mut SendQueue) -> bool {
        let is_passed = matches!(self.transport, ActiveTransport::PassFd(_));
        if is_passed {
            send_queue.push_order(|out| request::push_give_back(out, self.id));
        }
        is_passed
    }

    /// The region that the connection shares with the application.
    pub(crate) fn region(&mut self) -> Option<&mut SharedRegion> {
        self.region.as_mut()
    }

    /// Whether the application will soon have to wait for its region, or does already.
    pub(crate) fn waits_for_region(&self) -> bool {
        matches!(self.transport, ActiveTransport::Shm)
            && self.region.as_ref().is_some_and(SharedRegion::is_short)
    }

    /// Queues a message with the bytes that the application may reuse in its region. Returns whether there is one.
    pub(crate) fn push_free(&mut self, send_queue: &mut SendQueue) -> bool {
        let Some(region) = self.region.as_mut().filter(|_| matches!(self.transport, ActiveTransport::Shm))
        else {
            return false;
        };
        region.end_loans();
        let Some(bytes) = region.tell_free() else { return false };
        send_queue.push_order(|out| request::push_freed(out, self.id, bytes));
        true
    }
}
