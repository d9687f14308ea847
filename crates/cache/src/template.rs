//! What makes requests for the origin, each with fields of its own.

use std::sync::Arc;

use baton_buf::Aggregate;
use baton_http::origin::Asked;
use baton_upstream::{Application, ClientEnds, TurnSought};

/// What makes a request for the origin.
#[derive(Debug)]
pub(crate) struct Template {
    application: Arc<Application>,
    peers: Option<TurnSought>,
    text: Vec<u8>,
    asked: Asked,
    ends: Option<ClientEnds>,
}

impl Template {
    /// The form of a request without a body.
    pub(crate) fn of(request: baton_upstream::Request) -> Self {
        debug_assert!(
            request.rest.is_none() && request.handover.is_none(),
            "a request that is nothing but a head"
        );
        let baton_upstream::Request { application, peers, text, asked, ends, .. } = request;
        Self { application, peers, text, asked, ends }
    }

    /// The request, with more fields.
    pub(crate) fn request<'a>(
        &self,
        fields: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> baton_upstream::Request {
        let mut request = baton_upstream::Request {
            application: Arc::clone(&self.application),
            peers: self.peers.clone(),
            text: self.text.clone(),
            asked: self.asked,
            body: Aggregate::new(),
            rest: None,
            idempotent: true,
            handover: None,
            takes_pipes: false,
            ends: self.ends,
        };
        for (name, value) in fields {
            request.add_field(name, value);
        }
        request
    }
}
