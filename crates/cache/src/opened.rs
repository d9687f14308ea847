//! What becomes of a request that the cache is asked.

use std::ops::Range;
use std::sync::Arc;

use baton_http::{Method, RangeSpec, RequestHead};
use baton_segment::layout::Layout;
use baton_segment::rules::{CacheRequest, Decision, Forward, VariantKey, decide};
use baton_upstream::RequestId;

use crate::Ask;
use crate::directory::Entry;
use crate::fill::{Fill, Progress, Purpose, ReaderName};
use crate::object::Object;
use crate::shared::SharedCache;
use crate::template::Template;

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Opened {
    /// It is answered with this. If it is stale, a fill in the background revalidates it: this one, which has just begun.
    Serve(Arc<Object>, Option<Arc<Fill>>),
    /// It waits for a fill that another request has begun.
    Join(Arc<Fill>, Forward),
    /// It begins this fill.
    Fetch(Arc<Fill>),
    /// It goes on to the origin, and its response is not stored.
    Pass(Forward),
    /// It wants nothing but what is here.
    NotCached,
}

/// Who asks.
#[derive(Debug)]
pub(crate) struct Asker<'a> {
    pub(crate) ask: &'a Arc<Ask>,
    pub(crate) name: ReaderName,
    /// The name of a fill that it may begin.
    pub(crate) fill: RequestId,
    pub(crate) template: &'a Arc<Template>,
    /// It asks for the whole, though it wants a part.
    pub(crate) wants_whole: bool,
    pub(crate) now_s: u64,
}

impl SharedCache {
    /// Decides about a request, and makes it a reader of what it joins or begins.
    pub(crate) fn decide(&self, asker: &Asker<'_>) -> Opened {
        let Asker { ask, now_s, .. } = asker;
        let head = ask.head.get();
        let Ok(asked) = CacheRequest::of(&ask.route.rules, &head) else {
            return Opened::Pass(Forward::Bypass);
        };
        let opened = self.directory.with(ask, |entry| {
            entry.judge(&ask.route.rules);
            self.drop_purged(entry);
            let stored = entry.variants.iter().map(|object| &object.stored);
            let (found, forward) = match decide(&asked, stored, *now_s) {
                Decision::Serve(hit) => {
                    let object = Arc::clone(entry.object_of(hit.stored));
                    if self.can_serve(&object) {
                        let must_begin = hit.revalidates && !entry.is_validated(&object);
                        let refresh = must_begin.then(|| {
                            self.begin(asker, entry, Forward::Stale, Some(&object), Purpose::Refresh)
                        });
                        return Opened::Serve(object, refresh);
                    }
                    entry.variants.retain(|other| !Arc::ptr_eq(other, &object));
                    (None, Forward::UriMiss)
                }
                Decision::NotCached(_) => return Opened::NotCached,
                Decision::Revalidate(stored, forward) => (Some(Arc::clone(entry.object_of(stored))), forward),
                Decision::Fetch(forward) => (None, forward),
            };
            let is_passed = found.is_none() && entry.passes_until_s > *now_s;
            if head.method == Method::Head || is_passed || asked.directives.no_store {
                return Opened::Pass(forward);
            }
            let is_current = |fill: &Fill| self.is_current(fill.generation, &fill.ask.key, &[]);
            if let Some(fill) = entry.joinable(&head, found.as_ref(), is_current) {
                fill.join(&asker.name, 0);
                return Opened::Join(Arc::clone(fill), forward);
            }
            Opened::Fetch(self.begin(
                asker,
                entry,
                forward,
                found.as_ref(),
                Purpose::Client(asker.name.request),
            ))
        });
        opened.unwrap_or(Opened::Pass(Forward::Bypass))
    }

    /// Begins a fetch, of which a client that waits for it is a reader.
    pub(crate) fn begin(
        &self,
        asker: &Asker<'_>,
        entry: &mut Entry,
        forward: Forward,
        validates: Option<&Arc<Object>>,
        purpose: Purpose,
    ) -> Arc<Fill> {
        let head = asker.ask.head.get();
        let is_part = validates.is_none() && !asker.wants_whole;
        let fill = Fill {
            home: Arc::clone(&asker.name.home),
            id: asker.fill,
            ask: Arc::clone(asker.ask),
            forward,
            validates: validates.cloned(),
            generation: self.purges.newest(),
            requested_s: asker.now_s,
            purpose,
            range: head.range.filter(|_| is_part).and_then(|field| blocks_of(field, self.blocks.layout())),
            template: Arc::clone(asker.template),
            progress: Progress::default(),
        };
        let fill = Arc::new(fill);
        if matches!(purpose, Purpose::Client(_)) {
            fill.join(&asker.name, 0);
        }
        entry.asking.push(Arc::clone(&fill));
        fill
    }

    /// Whether all of a response is here, comes, or can be fetched.
    fn can_serve(&self, object: &Arc<Object>) -> bool {
        let content = object.content.key;
        object.is_combinable() || self.live.of(content).is_some() || self.blocks.is_complete(content)
    }
}

/// The bytes of all blocks of which a Range field wants something; up to `u64::MAX`: all from there on. `None`: the whole, or
/// several ranges. Where the last bytes are is not known before the length is: the first block tells it.
fn blocks_of(field: &[u8], layout: Layout) -> Option<Range<u64>> {
    let start_of = |offset| layout.bytes_of(layout.block_of(offset), None).start;
    match RangeSpec::only(field)? {
        RangeSpec::Suffix(_) => Some(0..layout.block_bytes()),
        RangeSpec::From { first, .. } if first >= layout.length_max() => None,
        RangeSpec::From { first, last } => {
            let end = last.filter(|last| *last < layout.length_max());
            let range = start_of(first)..end.map_or(u64::MAX, |last| start_of(last) + layout.block_bytes());
            (range != (0..u64::MAX)).then_some(range)
        }
    }
}

impl Entry {
    /// The response that a decision is about.
    pub(crate) fn object_of(&self, stored: &baton_segment::rules::Stored) -> &Arc<Object> {
        let object = self.variants.iter().find(|object| std::ptr::eq(&raw const object.stored, stored));
        object.expect("a decision is about one of those that it was given")
    }

    /// Whether its validation is under way.
    fn is_validated(&self, object: &Arc<Object>) -> bool {
        self.asking.iter().any(|fill| fill.validates_content_of(object))
    }

    /// A fetch whose response will answer this request, too, as far as can be known.
    fn joinable(
        &self,
        head: &RequestHead<'_>,
        validates: Option<&Arc<Object>>,
        is_current: impl Fn(&Fill) -> bool,
    ) -> Option<&Arc<Fill>> {
        self.asking.iter().find(|fill| {
            let is_same = match validates {
                Some(object) => fill.validates_content_of(object),
                None => self.is_of_same_variant(head, &fill.ask.head.get()),
            };
            is_same && fill.is_joinable() && is_current(fill)
        })
    }

    /// Whether responses that vary as those do that are known answer both requests.
    fn is_of_same_variant(&self, one: &RequestHead<'_>, other: &RequestHead<'_>) -> bool {
        self.variants.last().is_none_or(|object| {
            let key = |request| VariantKey::of(request, object.stored.head());
            key(one) == key(other)
        })
    }
}

impl Fill {
    fn validates_content_of(&self, object: &Arc<Object>) -> bool {
        self.validates.as_ref().is_some_and(|own| Arc::ptr_eq(&own.content, &object.content))
    }
}
