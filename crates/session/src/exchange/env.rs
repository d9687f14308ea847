//! What an exchange acts with, and what it returns.

use std::sync::Arc;

use baton_cache::Ask;
use baton_response::send_way::Trial;
use baton_upstream::TunnelEnd;

use crate::context::Context;
use crate::job::Job;
use crate::protocol::{Responder, StreamId};
use crate::transport::{PassTerms, Transport};

/// What an exchange works with.
#[derive(Debug)]
pub(crate) struct Env<'a> {
    /// Which request it is.
    pub(crate) stream: StreamId,
    pub(crate) ctx: &'a mut Context,
    pub(crate) reply: Responder<'a>,
    /// Where the request arrived.
    pub(crate) listener: usize,
    /// The client's connection.
    pub(crate) client: &'a Transport,
    /// The measurement to make if the response is sent alone.
    pub(crate) trial: Option<Trial>,
}

/// What an exchange needs next, once every response in front of its own has been sent.
#[derive(Debug, Default)]
pub(crate) enum Wants {
    /// Nothing: it is answered.
    #[default]
    Nothing,
    /// Its body.
    Body,
    /// A job done; then [`Exchange::handle_job`](super::Exchange::handle_job).
    Job(Job),
    /// The job that it asked for before.
    JobUnderWay,
    /// To be delegated to its application; then [`Exchange::handle_response_events`](super::Exchange::handle_response_events).
    Delegation(Delegation),
    /// To be taken back from what answers it; how far it has come is told by an event.
    Abandon,
    /// Another turn, after other clients had theirs.
    Turn,
    /// The gateway to go on with a tunnel of another process.
    Resume(Box<TunnelEnd>),
    /// The gateway's next event.
    ResponseEvents,
    /// To be woken by the gateway's next event.
    ResponseAwaited,
}

/// A request on its way to an application.
#[derive(Debug)]
pub(crate) struct Delegation {
    /// The request, without the offer that only the client's transport can add.
    pub(crate) request: Box<baton_upstream::Request>,
    /// What the shared cache is asked.
    pub(crate) ask: Option<Arc<Ask>>,
    /// How the application answers on the client's own connection, if it may.
    pub(crate) terms: Option<PassTerms>,
}

/// How warnings name a tunnel.
#[derive(Debug)]
pub(super) struct Shown {
    /// The origin.
    pub(super) origin: Box<str>,
    /// The request that has opened it.
    pub(super) request: Box<str>,
}
