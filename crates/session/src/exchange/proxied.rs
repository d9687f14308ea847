//! What an origin is told of a request.

use std::sync::Arc;

use base64::Engine;
use baton_buf::{Aggregate, Piece};
use baton_cache::Ask;
use baton_http::origin::{ForwardedBody, ForwardedClient, ForwardedRequest, RequestKind, upgrade_of};
use baton_http::{BodyFraming, Method, RequestHead, Status};
use baton_response::{Page, Reply, Response};
use baton_shares::ClientKey;
use baton_site::mark::Ids;
use baton_site::plan::{ClusterTerms, ClusterWay, ProxyTerms};
use baton_telemetry::log::Outcome;
use baton_telemetry::metrics::Metric;
use baton_upstream::{BodyRest, ChoiceKey, Chosen, OfferedHandOff, OfferedWays, Peers, Request, TurnSought};

use super::application::DelegatedRequest;
use super::env::{Delegation, Env};
use super::location;
use crate::protocol::Responder;
use crate::transport::Transport;

impl DelegatedRequest {
    /// The request as an origin gets it, or the response to one that must not go on. `protocol`: what an extended CONNECT
    /// wants to speak. `body`: what has arrived of the body, and whether that is all.
    pub(super) fn proxied(
        &self,
        env: &mut Env<'_>,
        terms: &ProxyTerms,
        protocol: Option<&[u8]>,
        ask: Option<&Arc<Ask>>,
        (body, is_complete): (Aggregate, bool),
    ) -> Result<Delegation, Box<Response>> {
        let own = self.head.get();
        let of_cache = ask.map(|ask| ask.forwarded());
        let head = of_cache.as_ref().unwrap_or(&own);
        if protocol.is_some_and(|protocol| !protocol.eq_ignore_ascii_case(WEBSOCKET)) {
            // RFC 9220 section 3.
            return Err(Box::new(self.page(Status::NOT_IMPLEMENTED)));
        }
        let rest = (!is_complete).then(|| match head.framing {
            BodyFraming::Length(length) => BodyRest::of_origin(Some(length.saturating_sub(body.len()))),
            _ => BodyRest::of_origin(None),
        });
        // All of the length may be there before the stream of HTTP/2 has ended.
        let rest = rest.filter(|rest| rest.left() != Some(0));
        let upgrade = protocol.or_else(|| upgrade_of(head)).filter(|_| terms.copies.is_none());
        let key = protocol.map(|_| websocket_key(&mut env.ctx.ids));
        let facts = terms.forwarding.rules.has_variables().then(|| self.facts(env.client, head));
        let forwarded = ForwardedRequest {
            head,
            claims: &own,
            client: self.forwarded_client(env.client),
            body: match &rest {
                _ if protocol.is_some() || matches!(head.framing, BodyFraming::None) => ForwardedBody::None,
                Some(rest) if rest.left().is_none() => ForwardedBody::Chunked,
                rest => {
                    let left = rest.as_ref().and_then(BodyRest::left).unwrap_or(0);
                    ForwardedBody::Length(body.len() + left)
                }
            },
            // Whose body has come waits for nothing.
            awaits_continue: head.expects_continue && body.is_empty() && rest.is_some(),
            keeps: self.delegate.application.settings().keep_connections,
            upgrade,
            websocket_key: key.as_deref(),
            variables: &facts,
        };
        let mut text = Vec::with_capacity(HEAD_BYTES_USUAL);
        if let Err(refused) = terms.forwarding.push_head(&mut text, &forwarded) {
            return Err(Box::new(self.page(refused.status()).ending(Outcome::Refused)));
        }
        let asked = match head.method {
            _ if protocol.is_some() => RequestKind::Tunnel,
            _ if upgrade.is_some() => RequestKind::Upgrade,
            Method::Head => RequestKind::Head,
            _ => RequestKind::Usual,
        };
        let offered = match ask {
            Some(_) => OfferedWays::default(),
            None => OfferedWays {
                redirect: matches!(head.method, Method::Get | Method::Head),
                hand_off: match &env.reply {
                    Responder::Http1(reply)
                        if env.ctx.agent_link.is_some()
                            && upgrade.is_none()
                            && rest.is_none()
                            && matches!(head.framing, BodyFraming::None | BodyFraming::Length(_))
                            && env.client.may_be_handed_off() =>
                    {
                        OfferedHandOff::IfCheaper { requests_before: reply.kept_requests_before() }
                    }
                    _ => OfferedHandOff::No,
                },
            },
        };
        let client = self.asker(env.client);
        let peers = terms.peers.as_ref();
        let peers = peers.map(|peers| turn_sought(env, terms, peers, (head, &body), client, offered));
        let request = Request {
            application: Arc::clone(&self.delegate.application),
            peers,
            turn: None,
            text,
            asked,
            body,
            rest,
            idempotent: upgrade.is_none() && is_idempotent(head.method),
            pass: None,
            takes_pipes: ask.is_none()
                && self.rules().digest.is_none()
                && env.reply.may_send_by_reference()
                && env.client.takes_pipes(),
            ends: self.ends(env.client),
            client,
        };
        Ok(Delegation { request: Box::new(request), ask: ask.cloned(), terms: None })
    }

    /// Sends the client to the node that was chosen; `public`: how its URL begins.
    pub(super) fn redirected_to_node(&self, chosen: &Chosen, public: &str) -> Response {
        chosen.note_redirected();
        let location = location::at(public, &self.head.get());
        self.rules().page(Page::redirect(Status::TEMPORARY_REDIRECT, &location))
    }

    fn forwarded_client(&self, client: &Transport) -> ForwardedClient {
        let peer = client.ip();
        let is_trusted = self.delegate.trusts(client.ip());
        ForwardedClient {
            // A chain of proxies that is passed on goes on with the nearest one.
            address: if is_trusted { peer } else { self.client_address(client).map(|address| address.ip()) },
            is_https: client.is_https(),
            is_trusted,
        }
    }
}

/// The turn that a request seeks: policies of a cluster choose by its key, and the client may be able to get to a node by itself.
fn turn_sought(
    env: &mut Env<'_>,
    terms: &ProxyTerms,
    peers: &Arc<Peers>,
    (head, body): (&RequestHead<'_>, &Aggregate),
    client: Option<ClientKey>,
    offered: OfferedWays,
) -> TurnSought {
    let peers = Arc::clone(peers);
    let Some(ClusterTerms { way, key }) = &terms.cluster else {
        return TurnSought::new(peers, head.target, client);
    };
    let offered = OfferedWays {
        redirect: offered.redirect && *way == ClusterWay::Redirect,
        hand_off: match (way, offered.hand_off) {
            (ClusterWay::Auto, offered) => offered,
            (ClusterWay::HandOff, OfferedHandOff::IfCheaper { .. }) => OfferedHandOff::Always,
            _ => OfferedHandOff::No,
        },
    };
    let choice = key.choice(head, first_bytes(body));
    if choice == ChoiceKey::Missing {
        env.ctx.tally.add(Metric::ClusterKeysMissing, 1);
    }
    TurnSought::new(peers, head.path, client).offering(offered).keyed(choice)
}

/// The beginning of a body: the buffer in which an upload has collected what a key needs.
fn first_bytes(body: &Aggregate) -> &[u8] {
    match body.front() {
        Some(Piece::Memory(slice)) => slice,
        _ => b"",
    }
}

/// Whether a request may be sent twice (RFC 9110 section 9.2.2).
fn is_idempotent(method: Method) -> bool {
    matches!(method, Method::Get | Method::Head | Method::Options | Method::Put | Method::Delete)
}

/// What an extended CONNECT lacks (RFC 8441 section 5): the origin proves with it that it speaks WebSocket. The server
/// stands for its client here.
fn websocket_key(ids: &mut Ids) -> String {
    base64::engine::general_purpose::STANDARD.encode(ids.draw().to_be_bytes())
}

/// What a version of HTTP other than 1.1 asks for.
const WEBSOCKET: &[u8] = b"websocket";

/// Bytes of a browser's request, with the fields that are added.
const HEAD_BYTES_USUAL: usize = 1_024;
