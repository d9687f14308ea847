//! What an exchange is given to act with, and what comes of it.

use baton_http::Status;

use crate::context::Context;
use crate::job::Job;
use crate::log::Outcome;
use crate::protocol::{Responder, StreamId};
use crate::send_way::Trial;
use crate::transport::{HandOverTerms, Transport};

/// What an exchange works with.
#[derive(Debug)]
pub(crate) struct Env<'a> {
    /// Which request it is.
    pub(crate) stream: StreamId,
    pub(crate) ctx: &'a mut Context,
    pub(crate) reply: Responder<'a>,
    /// Where the request arrived.
    pub(crate) listener: usize,
    /// Who asks.
    pub(crate) client: &'a Transport,
    /// What of the response is to be measured, if it is sent alone.
    pub(crate) trial: Option<Trial>,
}

/// What an exchange needs to go on, once the responses in front of its own have been sent.
#[derive(Debug, Default)]
pub(crate) enum Wants {
    /// Nothing: it is answered.
    #[default]
    Nothing,
    /// Its body.
    Body,
    /// A job done; then [`Exchange::handle_found`](super::Exchange::handle_found).
    Job(Job),
    /// The job that it wanted before.
    JobUnderWay,
    /// To be given to its application; then [`Exchange::handle_news`](super::Exchange::handle_news).
    Delegation(Delegation),
    /// News of the answer.
    News,
    /// To be told when there is news of the answer.
    NewsUnderWay,
}

/// A request on its way to an application.
#[derive(Debug)]
pub(crate) struct Delegation {
    /// What the application is asked, without what only the client's transport can give.
    pub(crate) request: Box<baton_gateway::Request>,
    /// How it would have to answer on the client's own connection, if it may.
    pub(crate) terms: Option<HandOverTerms>,
}

/// A response that has begun.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) status: Status,
    /// How the request ends if the response arrives.
    pub(super) outcome: Outcome,
    pub(super) trial: Option<Trial>,
}

impl From<Status> for Ready {
    fn from(status: Status) -> Self {
        Self { status, outcome: Outcome::Complete, trial: None }
    }
}
