//! The state of a connection: its input, and the response under way.

use baton_content::HeadForm;
use baton_http::response::Framing;
use baton_http::{BodyFraming, HeadScanner, Method, RequestHead, Version};
use baton_passport::parcel::{Packer, Unpacker};
use baton_site::limits::Limits;

use super::body::BodyRest;
use crate::protocol::StreamId;

/// One HTTP/1 connection as a machine.
///
/// Input: [`next`](Self::next) and [`read_body`](Self::read_body) are given the input that has not been consumed. A
/// request that was taken is answered through its [`Responder`](super::Responder).
#[derive(Debug)]
pub(crate) struct Http1 {
    pub(super) input_state: InputState,
    pub(super) scanner: HeadScanner,
    /// Requests that were taken.
    pub(super) requests: u64,
    /// How many of these another process has taken.
    earlier: u64,
    pub(super) response: Response,
}

impl Http1 {
    /// A connection before its first request.
    pub(crate) fn new() -> Self {
        Self {
            input_state: InputState::Head,
            scanner: HeadScanner::new(),
            requests: 0,
            earlier: 0,
            response: Response::last(false),
        }
    }

    /// A connection on which so many requests were taken and answered.
    pub(crate) fn resumed(requests: u64) -> Self {
        Self { requests, earlier: requests, ..Self::new() }
    }

    /// Whether another process can go on behind the response to the request that was taken last, which is complete.
    pub(crate) fn is_movable(&self) -> bool {
        !self.response.is_cut
            && !self.response.ends_half
            && !matches!(self.input_state, InputState::Ahead { .. })
    }

    /// Packs how the connection goes on behind that response.
    pub(crate) fn pack(&self, packer: &mut Packer) {
        packer.flag(self.response.keeps).flag(self.response.is_asked_last);
    }

    /// Takes what another process has packed. `None`: it has packed something else.
    pub(crate) fn resume_response(&mut self, packed: &mut Unpacker<'_>) -> Option<()> {
        self.response.keeps = packed.flag()?;
        self.response.is_asked_last = packed.flag()?;
        Some(())
    }

    /// What follows is another protocol's, in both directions, up to the end of the connection.
    pub(crate) fn open_tunnel(&mut self) {
        self.input_state = InputState::Tunnel;
        self.response.frame = Frame::Own { framing: Framing::Close, left: u64::MAX };
    }

    /// The request that was taken last.
    pub(crate) fn stream(&self) -> StreamId {
        StreamId::of(self.requests)
    }

    /// Counts input that is no request as one, so that it can be refused.
    pub(crate) fn take_unreadable(&mut self, input: &[u8]) -> StreamId {
        self.requests += 1;
        // An answer to HEAD has no body whatever is wrong with the rest (RFC 9110, section 9.3.2).
        self.response = Response::last(input.trim_ascii_start().starts_with(b"HEAD "));
        self.stream()
    }

    /// The request that was taken last is left to another process: the connection is as it was before.
    pub(crate) fn take_back(&mut self) {
        self.requests -= 1;
        (self.input_state, self.response) = (InputState::Head, Response::last(false));
    }

    /// Requests that were taken.
    pub(crate) fn requests(&self) -> u64 {
        self.requests
    }

    /// Requests that were taken here before the last one; 0 if the connection ends behind that.
    pub(super) fn kept_requests_before(&self) -> u64 {
        if self.response.keeps { self.requests.saturating_sub(self.earlier + 1) } else { 0 }
    }
}

/// The position in the input.
#[derive(Debug)]
pub(super) enum InputState {
    /// Before or in a head.
    Head,
    /// Behind the head of a request whose body is neither wanted nor unwanted yet. `awaited`: the client waits for `100
    /// Continue` before it sends it.
    Ahead { framing: BodyFraming, awaited: bool },
    /// In a body that is kept.
    Body(BodyRest),
    /// In a body that is skipped.
    Unwanted(BodyRest),
    /// In a body that the gateway is given while it arrives.
    Lent(BodyRest),
    /// Behind a switch of protocols: what comes is the other protocol's.
    Tunnel,
}

/// The response to the request that was taken last.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) version: Version,
    /// The request is a `HEAD`: no body is sent.
    pub(super) is_head: bool,
    /// Whether the connection goes on after it, as far as is known.
    pub(super) keeps: bool,
    /// The client has said that it sends no other request.
    pub(super) is_asked_last: bool,
    /// The rest of the body will not come.
    pub(super) is_cut: bool,
    /// Behind a switch of protocols, nothing more is sent, and the client may go on.
    pub(super) ends_half: bool,
    pub(super) frame: Frame,
}

/// How the body that is being sent is framed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Frame {
    /// Nothing has been sent yet, or all at once.
    Whole,
    /// As the head of an application's response says; the declared length has room for `left` bytes.
    Own { framing: Framing, left: u64 },
    /// As the application chose, which has written the head to the client itself.
    Foreign { may_go_on: bool },
}

impl Response {
    /// The last response of a connection.
    pub(super) fn last(is_head: bool) -> Self {
        Self {
            version: Version::Http11,
            is_head,
            keeps: false,
            is_asked_last: false,
            is_cut: false,
            ends_half: false,
            frame: Frame::Whole,
        }
    }

    pub(super) fn to(head: &RequestHead<'_>, requests: u64, limits: &Limits) -> Self {
        Self {
            version: head.version,
            is_head: head.method == Method::Head,
            keeps: head.keep_alive && requests + 1 < limits.requests_per_connection_max,
            is_asked_last: !head.keep_alive,
            is_cut: false,
            ends_half: false,
            frame: Frame::Whole,
        }
    }

    pub(super) fn head_form(&self) -> HeadForm {
        match (self.keeps, self.version) {
            (true, Version::Http11 | Version::Http2) => HeadForm::KeepAlive,
            (true, Version::Http10) => HeadForm::KeepAliveHttp10,
            (false, _) => HeadForm::Close,
        }
    }
}
