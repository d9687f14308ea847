//! The next segments of a session, which are fetched before a client asks for them.
//!
//! A client that plays a film asks for one segment after the other, and their names count. Whenever it gets one, those behind
//! it are fetched in the background, as if the same client had asked. Segments that come so lead to no others: the prefetch
//! follows the session, and ends with it.

use std::sync::Arc;

use baton_fcgi::cgi::Instruction;
use baton_http::origin::ResponseHead;
use baton_http::{Method, RangeSpec, RequestHead, Status};
use baton_segment::rules::{Forward, Key};
use baton_upstream::RequestId;

use crate::directory::Entry;
use crate::fill::{Purpose, ReaderName};
use crate::loop_cache::Caching;
use crate::opened::Asker;
use crate::{Ask, CachedRoute, SharedCache};

impl Caching<'_> {
    /// Has the segments behind the one that a client gets fetched, as many as its route wants.
    pub(crate) fn prefetch_behind(&mut self, name: RequestId) {
        let cache = &*self.cache;
        let Some(exchange) = cache.exchanges.get(&name) else { return };
        if !is_of_a_session(&exchange.ask.route, &exchange.ask.head.get()) {
            return;
        }
        let (ask, template, shared) =
            (Arc::clone(&exchange.ask), Arc::clone(&exchange.template), Arc::clone(&cache.shared));
        for steps in 1..=ask.route.prefetch.into() {
            if self.gateway.is_half_busy() {
                return;
            }
            let cache = &mut *self.cache;
            let Some(next) = ask.next(&shared.secret, steps).map(Arc::new) else { return };
            let Some(template) = template.next(ask.key.target(), next.key.target()) else { return };
            let (template, fill, now_s) = (Arc::new(template), cache.next_name(), (shared.unix_s)());
            let name = ReaderName { home: Arc::clone(&cache.home), request: fill };
            let asker = Asker { ask: &next, name, fill, template: &template, wants_whole: true, now_s };
            let begun = shared.directory.with(&next, |entry| {
                entry.lacks_prefetch(now_s).then(|| {
                    entry.prefetched_s = now_s;
                    shared.begin(&asker, entry, Forward::UriMiss, None, Purpose::Prefetch)
                })
            });
            if let Some(fill) = begun.flatten() {
                self.fetch(&fill);
            }
        }
    }
}

impl SharedCache {
    /// Whether a client that gets the response of this key should have a segment behind it fetched.
    pub(crate) fn wants_prefetch(
        &self,
        route: &CachedRoute,
        key: &Key,
        head: &RequestHead<'_>,
        now_s: u64,
    ) -> bool {
        is_of_a_session(route, head)
            && (1..=route.prefetch.into()).map_while(|steps| Ask::next_key(key, steps)).any(|next| {
                let hash = Ask::hash_of(route, &self.secret, &next);
                let lacks = |entry: Option<&mut Entry>| entry.is_none_or(|entry| entry.lacks_prefetch(now_s));
                self.directory.with_known((&next, hash), &route.partition, lacks)
            })
    }
}

/// Parts of a film that is one file have no names, and what was asked for on behalf of one user seldom is for others. What a
/// rewrite makes of the next name is not known here.
fn is_of_a_session(route: &CachedRoute, head: &RequestHead<'_>) -> bool {
    let is_whole = || head.method == Method::Get && head.range.is_none_or(is_from_the_first_byte);
    route.prefetch > 0 && is_whole() && !head.is_rewritten() && head.field("Authorization").is_none()
}

/// Whether a range is all that there is: some players ask so for each segment.
fn is_from_the_first_byte(range: &[u8]) -> bool {
    RangeSpec::only(range) == Some(RangeSpec::From { first: 0, last: None })
}

impl Entry {
    /// Whether nothing is known of a response, and none is on its way or was asked for a moment ago.
    fn lacks_prefetch(&self, now_s: u64) -> bool {
        let was_asked = now_s < self.prefetched_s + AGAIN_S;
        self.variants.is_empty() && self.asking.is_empty() && !was_asked && self.passes_until_s <= now_s
    }
}

/// Whether a response for which no client waits is what a session will want: errors may be none when it does.
pub(crate) fn is_segment(head: &ResponseHead, instruction: &Instruction) -> bool {
    let is_short = head.content_length().is_some_and(|bytes| bytes <= BYTES_MAX);
    head.status() == Status::OK && is_short && matches!(instruction, Instruction::None)
}

/// How long a segment that did not come is not asked for again. A live one comes within seconds.
const AGAIN_S: u64 = 5;

/// The longest segment that is prefetched: ten seconds of a film in the best quality.
const BYTES_MAX: u64 = 64 << 20;
