//! The pieces of a response.

use std::sync::Arc;

use baton_buf::Aggregate;
use baton_fcgi::cgi::Instruction;
use baton_fcgi::{Answered, Rest};
use baton_http::origin::{ResponseHead, Trailers};
use smallvec::SmallVec;

use crate::chosen::Chosen;
use crate::{AnswerTransport, Application, Failure, Trail};

/// The next piece of an answer. In order: any number of `Interim`, `Head`, any number of `Body`, perhaps `Trailers`, `End`;
/// or `Switch`, any number of `Body`, perhaps `HalfEnd`, `End`; or `Rest`, any number of `Body`, `End`; or `Answered`.
/// `Failed` can take the place of any of these. `Stderr` may come anywhere in front of the last.
#[derive(Debug)]
pub enum ResponseEvent {
    /// Complete lines that the application wrote for the error log.
    Stderr(Vec<u8>),
    /// A head in front of the head (1xx).
    Interim(ResponseHead),
    /// In front of the head: what the shared cache did, in the word for the log.
    CacheNote(&'static str),
    /// In front of the head: which of several origins has sent it.
    Answering(Arc<Application>),
    /// The head of the response, without fields that are not for the client, and what the application asks of the server.
    Head(ResponseHead, Instruction),
    /// The head of a response that switches protocols. Bodies are the other protocol's from here on, and so is what the
    /// client sends: it is [pushed](crate::Gateway::push_body) as it comes.
    Switch(ResponseHead),
    /// The next bytes of the response's body; behind a `Rest`, the next bytes on the wire.
    Body(Aggregate),
    /// The fields behind the body.
    Trailers(Trailers),
    /// Behind a `Switch`: the origin sends no more, and still takes what the client sends.
    HalfEnd,
    /// The application has begun to answer on the client's socket, and gives the rest back: the socket is the server's
    /// again, and every `Body` from here on is sent on it as it is.
    Rest(Rest),
    /// In front of the last event of a request to an origin: which one had it last, and the way that it took.
    Trail(Arc<Application>, Trail),
    /// In front of the last event of a request to an application: how its answer has travelled.
    Travelled(AnswerTransport),
    /// A node was chosen that the request can get to without the gateway, as it was offered. The last event of its request.
    Chosen(Box<Chosen>),
    /// The response is complete. The last event of its request.
    End {
        /// What the application says of itself: 0 by convention if all went well.
        app_status: u32,
    },
    /// The application has answered on the client's socket, which is the server's again. The last event of its request.
    Answered(Answered),
    /// The response is missing or incomplete. The last event of its request.
    Failed(Failure),
}

/// What there is of a response at a time. A complete one of an origin has four pieces, which cost no allocation.
pub type ResponseEvents = SmallVec<[ResponseEvent; 4]>;

impl ResponseEvent {
    /// Whether it is the last of its request, which the gateway has forgotten.
    pub fn is_last(&self) -> bool {
        matches!(self, Self::End { .. } | Self::Answered(_) | Self::Failed(_) | Self::Chosen(_))
    }
}
