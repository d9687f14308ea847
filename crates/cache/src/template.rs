//! What makes requests for the origin, each with fields of its own.

use std::sync::Arc;

use baton_buf::Aggregate;
use baton_http::origin::RequestKind;
use baton_shares::ClientKey;
use baton_upstream::{Application, ClientEnds, Protocol, TurnSought};

/// What makes a request for the origin.
#[derive(Debug)]
pub(crate) struct Template {
    application: Arc<Application>,
    peers: Option<TurnSought>,
    text: Vec<u8>,
    asked: RequestKind,
    ends: Option<ClientEnds>,
    client: Option<ClientKey>,
}

impl Template {
    /// The form of a request without a body.
    pub(crate) fn of(request: baton_upstream::Request) -> Self {
        debug_assert!(
            request.rest.is_none() && request.pass.is_none(),
            "a request that is nothing but a head"
        );
        let baton_upstream::Request { application, peers, text, asked, ends, client, .. } = request;
        Self { application, peers, text, asked, ends, client }
    }

    /// Who asks.
    pub(crate) fn client(&self) -> Option<ClientKey> {
        self.client
    }

    /// What makes the same request for another target, where `from` and `to` differ in the name behind the last slash of the
    /// path. `None`: the request is none of HTTP, or does not end in that name.
    pub(crate) fn next(&self, from: &[u8], to: &[u8]) -> Option<Self> {
        let path = &from[..memchr::memchr(b'?', from).unwrap_or(from.len())];
        let name_at = memchr::memrchr(b'/', path)?;
        let is_http = self.application.settings().protocol == Protocol::Http1;
        let line_end = memchr::memmem::find(&self.text, b"\r\n").filter(|_| is_http)?;
        let (line, fields) = self.text.split_at(line_end);
        let target_end = memchr::memrchr(b' ', line)?;
        let start = line[..target_end].strip_suffix(&from[name_at..])?;
        let target = [&start[memchr::memchr(b' ', start)? + 1..], &to[name_at..]].concat();
        Some(Self {
            application: Arc::clone(&self.application),
            peers: self.peers.as_ref().map(|sought| sought.for_target(&target)),
            text: [start, &to[name_at..], &line[target_end..], fields].concat(),
            asked: self.asked,
            ends: self.ends,
            client: self.client,
        })
    }

    /// The request, with more fields.
    pub(crate) fn request<'a>(
        &self,
        fields: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> baton_upstream::Request {
        let mut request = baton_upstream::Request {
            application: Arc::clone(&self.application),
            peers: self.peers.clone(),
            turn: None,
            text: self.text.clone(),
            asked: self.asked,
            body: Aggregate::new(),
            rest: None,
            idempotent: true,
            pass: None,
            takes_pipes: false,
            ends: self.ends,
            client: self.client,
        };
        for (name, value) in fields {
            request.add_field(name, value);
        }
        request
    }
}
