//! Requests on cached routes: answers from the shared cache, and what it is asked otherwise.

use std::sync::Arc;

use baton_buf::Aggregate;
use baton_cache::{Answer, Ask, Bypass, CacheWord, Look};
use baton_encode::{Verdict, judge, vary_on_coding};
use baton_http::origin::ResponseHead;
use baton_http::{Method, RequestHead, Status};

use super::env::{Env, Ready};
use super::lent;
use super::page::Page;
use super::record::Record;
use super::routed::Routed;
use crate::plan::{Delegate, Plan};
use crate::rewrites::{Rewrites, RewrittenTarget};

/// What is left to do for a request.
#[derive(Debug)]
pub(super) enum Looked {
    /// To delegate it, and to ask the cache this; `None`: the cache has nothing to do with it.
    Ask(Option<Arc<Ask>>),
    /// To code this fresh response, which the cache keeps as it is.
    ToCode((ResponseHead, Aggregate)),
}

/// Answers a request from the shared cache, if a fresh response to it is there, or says what is left to do.
///
/// # Errors
/// The answer, which is in the outlet.
pub(super) fn look(
    env: &mut Env<'_>,
    plan: &Plan,
    (routed, rewrites): (&Routed<'_>, &Rewrites),
    head: &RequestHead<'_>,
    delegate: &Delegate,
    record: &mut Record,
) -> Result<Looked, Ready> {
    let (Some(route), Some(cache)) = (&delegate.cache, env.ctx.shared_cache.clone()) else {
        return Ok(Looked::Ask(None));
    };
    let (now_s, now_ms) = (env.ctx.clock.stamp().unix_seconds, env.ctx.clock.now_ms());
    let arrival = delegate.arrival(env.client, head);
    let target = rewrites.forwarded_target(route, arrival, head, routed.site);
    let looked = target.and_then(|target| Ok((cache.look(route, arrival, head, now_s, now_ms)?, target)));
    let (look, target) = match looked {
        Ok(looked) => looked,
        Err(bypass) => {
            record.note_cache(CacheWord::Forward(bypass.forward()).as_str());
            return Ok(Looked::Ask(None));
        }
    };
    match look {
        Look::Answer(answer) => {
            let Answer { head: mut response, body, word } = answer;
            record.note_cache(word.as_str());
            if let Some(terms) = delegate.proxy() {
                terms.responses.apply(&mut response, head);
            }
            if let Some(copies) = delegate.copies()
                && let Some(instead) = copies.instead_of(&response)
            {
                let routed = Routed { headers: &delegate.headers, ..*routed };
                return Err(lent::answer_instead((&routed, copies), env.ctx, head, instead, &mut env.reply));
            }
            match delegate.compress.as_ref().map(|rules| judge(rules, head, &response, Some(body.len()))) {
                Some(Verdict::Coded(_)) => return Ok(Looked::ToCode((response, body))),
                Some(Verdict::NotHere) => vary_on_coding(&mut response),
                Some(Verdict::Never) | None => {}
            }
            let fields = delegate.response_fields(plan, routed.allowed, env.ctx);
            let whole = (head.method != Method::Head).then(|| body.len());
            env.reply.send_application_head(&mut env.ctx.heads, &response, whole, &fields, body);
            env.ctx.heads.freeze(fields);
            Err(response.status().into())
        }
        Look::NotCached(word) => {
            record.note_cache(word.as_str());
            let routed = Routed { headers: &delegate.headers, ..*routed };
            Err(routed.page(env.ctx, Page::error(Status::GATEWAY_TIMEOUT), &mut env.reply))
        }
        Look::Ask(key) => {
            let target = target.as_ref().map(RewrittenTarget::parts);
            let ask = Ask::new(route, key, head, target, &plan.limits.head).map(Arc::new);
            if ask.is_none() {
                record.note_cache(CacheWord::Forward(Bypass::Path.forward()).as_str());
            }
            Ok(Looked::Ask(ask))
        }
    }
}

/// A request with which the cache has nothing to do was answered. Perhaps it has changed something.
pub(super) fn note_bypass(
    env: &Env<'_>,
    delegate: &Delegate,
    request: &RequestHead<'_>,
    response: &mut ResponseHead,
) {
    if let (Some(route), Some(cache)) = (&delegate.cache, &env.ctx.shared_cache) {
        cache.invalidate(route, delegate.arrival(env.client, request), request, response);
        cache.note_bypass(route, request, response);
    }
}
