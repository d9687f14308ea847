//! A request whose node is chosen, and that can get there without the gateway.

use std::sync::Arc;

use baton_buf::Aggregate;

use crate::peers::Turn;
use crate::{Application, Request, Trail, Way};

/// A request whose node is chosen. It counts for the node's load until this is dropped.
#[derive(Debug)]
pub struct Chosen {
    turn: Turn,
    request: Request,
}

impl Chosen {
    /// A request, and its turn at a node to which it has another way than through the gateway.
    pub(crate) fn new(request: Request, turn: Turn) -> Self {
        Self { turn, request }
    }

    /// The node.
    pub fn application(&self) -> &Arc<Application> {
        self.turn.application()
    }

    /// For the log.
    pub fn trail(&self) -> Trail {
        Trail { choice: self.turn.choice(), ..Trail::default() }
    }

    /// How the URL begins to which the client is sent, if that is the way.
    pub fn public(&self) -> Option<&str> {
        let way = self.turn.choice()?.way;
        self.turn.public().filter(|_| way == Way::Redirect)
    }

    /// The name of the node to which the connection is to be handed over, if that is the way.
    pub fn node(&self) -> Option<&str> {
        let way = self.turn.choice()?.way;
        self.application().settings().node.as_deref().filter(|_| way == Way::HandOff)
    }

    /// The connection was handed over, which has taken so many nanoseconds here. The request counts for the node's load until the
    /// node says that it has ended.
    pub fn note_handed_off(&self, ns: u64) {
        if let Some(node) = self.turn.node() {
            node.note_given(ns);
        }
        let record = &self.application().settings().record;
        record.note_way(Way::HandOff);
        record.note_handed_off();
    }

    /// The body of the request, of which all has come.
    pub fn body(&self) -> &Aggregate {
        &self.request.body
    }

    /// The client is sent to the node.
    pub fn note_redirected(&self) {
        self.application().settings().record.note_way(Way::Redirect);
    }

    /// The way cannot be taken: the same request for the gateway, at the same node.
    pub fn relay(self) -> Request {
        let Self { mut turn, mut request } = self;
        turn.take_way(Way::Relay);
        request.turn = Some(turn);
        request
    }
}
