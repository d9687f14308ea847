//! Requests on cached routes: answers from the shared cache, and what it is asked otherwise.

use std::sync::Arc;

use baton_cache::{Ask, Bypass, CacheWord, CachedAnswer, Look};
use baton_http::origin::ResponseHead;
use baton_http::{RequestHead, Status};
use baton_response::{Author, Body, Page, Response, Rules};
use baton_shares::ClientKey;
use baton_site::condition::RequestView;
use baton_site::plan::{Delegate, Plan};
use baton_site::rewrites::{Rewrites, RewrittenTarget};

use super::env::Env;
use super::lent;
use super::record::Record;
use super::routed::{Routed, bypasses_cache, intercepts};

/// What the shared cache has for a request.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "taken apart where it is returned, never kept")]
pub(super) enum Looked<'a> {
    /// Nothing yet: it is to be delegated, and the cache to be asked this; `None`: the cache has nothing to do with it.
    Ask(Option<Arc<Ask>>),
    /// The answer, and what it obeys.
    Answer(Response, Rules<'a>),
}

/// Answers a request from the shared cache, if a fresh response to it is there, or says what is left to do.
pub(super) fn look<'a>(
    env: &mut Env<'_>,
    plan: &Plan,
    (routed, rewrites): (&Routed<'a>, &Rewrites),
    view: &RequestView<'_>,
    delegate: &'a Delegate,
    record: &mut Record,
) -> Looked<'a> {
    let (Some(route), Some(cache)) = (&delegate.cache, env.ctx.shared_cache.clone()) else {
        return Looked::Ask(None);
    };
    let head = view.head;
    if bypasses_cache(routed.route, view) {
        record.note_cache(CacheWord::Forward(Bypass::Rule.forward()).as_str());
        return Looked::Ask(None);
    }
    let rules = routed.rules;
    let (now_s, now_ms) = (env.ctx.clock.stamp().unix_seconds, env.ctx.clock.now_ms());
    let arrival = delegate.arrival(env.client.ip(), env.client.is_https(), head);
    let target = rewrites.forwarded_target(route, arrival, head, routed.site);
    let client = view.address.map(ClientKey::of);
    let looked =
        target.and_then(|target| Ok((cache.look(route, arrival, head, client, now_s, now_ms)?, target)));
    let (look, target) = match looked {
        Ok(looked) => looked,
        Err(bypass) => {
            record.note_cache(CacheWord::Forward(bypass.forward()).as_str());
            return Looked::Ask(None);
        }
    };
    match look {
        Look::Answer(answer) => {
            let CachedAnswer { head: mut response, body, word } = answer;
            record.note_cache(word.as_str());
            if let Some(terms) = delegate.proxy() {
                terms.responses.apply(&mut response, head);
            }
            if let Some(copies) = delegate.copies()
                && let Some(instead) = copies.instead_of(&response)
            {
                let response = lent::answer_instead((&rules, copies), env.ctx, head, instead);
                return Looked::Answer(response, rules);
            }
            if intercepts(routed.route, response.status()) {
                return Looked::Answer(rules.page(Page::error(response.status())), rules);
            }
            let body = Body::Begun(body, true);
            Looked::Answer(Response::of_lines(response, Author::of(delegate), body), rules)
        }
        Look::NotCached(word) => {
            record.note_cache(word.as_str());
            Looked::Answer(rules.page(Page::error(Status::GATEWAY_TIMEOUT)), rules)
        }
        Look::Ask(key) => {
            let target = target.as_ref().map(RewrittenTarget::parts);
            let ask = Ask::new(route, key, head, target, &plan.limits.head).map(Arc::new);
            if ask.is_none() {
                record.note_cache(CacheWord::Forward(Bypass::Path.forward()).as_str());
            }
            Looked::Ask(ask)
        }
    }
}

/// A request with which the cache has nothing to do was answered. Perhaps it has changed something.
pub(super) fn note_bypass(
    env: &Env<'_>,
    delegate: &Delegate,
    request: &RequestHead<'_>,
    is_by_rule: bool,
    response: &mut ResponseHead,
) {
    if let (Some(route), Some(cache)) = (&delegate.cache, &env.ctx.shared_cache) {
        cache.invalidate(
            route,
            delegate.arrival(env.client.ip(), env.client.is_https(), request),
            request,
            response,
        );
        let otherwise = if is_by_rule { Bypass::Rule } else { Bypass::Path };
        cache.note_bypass(route, request, otherwise, response);
    }
}
