//! What the cache is asked: a request in the form in which it counts.

use std::sync::Arc;

use baton_http::{AcceptedCodings, HeadLimits, KeptHead, Method, RangeSpec, RequestHead, is_same_field};
use baton_segment::next_segment;
use baton_segment::rules::{
    Arrival, Bypass, CacheRequest, FieldUse, Key, KeySecret, KeyedFields, push_reduced_codings,
};

use crate::{CachedRoute, PurgeOrder};

/// A request that the cache may answer.
#[derive(Debug)]
pub struct Ask {
    pub(crate) route: Arc<CachedRoute>,
    pub(crate) key: Key,
    pub(crate) hash: u64,
    pub(crate) head: KeptHead,
    forwarded: KeptHead,
}

/// The key of a request, and its hash.
#[derive(Debug)]
pub struct AskKey {
    pub(crate) key: Key,
    pub(crate) hash: u64,
    is_trusted: bool,
}

impl CachedRoute {
    /// What a response to this request is found by.
    ///
    /// # Errors
    /// The cache has nothing to do with the request.
    pub fn key_of(&self, arrival: Arrival, head: &RequestHead<'_>) -> Result<Key, Bypass> {
        CacheRequest::of(&self.rules, head)?;
        Ask::cachable_key_of(self, arrival, head)
    }
}

impl Ask {
    /// The key of a request, which [may be answered](CacheRequest::of) by the cache.
    ///
    /// # Errors
    /// The cache has nothing to do with its path.
    pub(crate) fn key_of(
        route: &CachedRoute,
        secret: &KeySecret,
        arrival: Arrival,
        head: &RequestHead<'_>,
    ) -> Result<AskKey, Bypass> {
        let key = Self::cachable_key_of(route, arrival, head)?;
        let hash = Self::hash_of(route, secret, &key);
        Ok(AskKey { key, hash, is_trusted: arrival.is_trusted })
    }

    /// By which a key is found among those of all routes.
    pub(crate) fn hash_of(route: &CachedRoute, secret: &KeySecret, key: &Key) -> u64 {
        key.hash_within(secret, route.partition.as_bytes()).0 as u64
    }

    /// The key of the segment `steps` behind the one of a key, if its name counts.
    pub(crate) fn next_key(key: &Key, steps: u64) -> Option<Key> {
        let target = next_segment(key.target(), steps)?;
        let next = key.with_target(&target)?;
        (next.uri().len() <= PurgeOrder::TEXT_BYTES_MAX).then_some(next)
    }

    /// What the same client would ask for the segment `steps` behind this one.
    pub(crate) fn next(&self, secret: &KeySecret, steps: u64) -> Option<Self> {
        let key = Self::next_key(&self.key, steps)?;
        let limits = HeadLimits::default();
        let head = self.head.redirected(key.target(), &limits).ok()?;
        let forwarded = self.forwarded.redirected(key.target(), &limits).ok()?;
        let hash = Self::hash_of(&self.route, secret, &key);
        Some(Self { route: Arc::clone(&self.route), key, hash, head, forwarded })
    }

    fn cachable_key_of(route: &CachedRoute, arrival: Arrival, head: &RequestHead<'_>) -> Result<Key, Bypass> {
        let uri = Self::uri_of(route, arrival, head).ok_or(Bypass::Path)?;
        // No purge could name it.
        if uri.as_bytes().len() > PurgeOrder::TEXT_BYTES_MAX {
            return Err(Bypass::Path);
        }
        let host = (head.host.unwrap_or_default(), head.port);
        let fields = KeyedFields::of(&route.rules, arrival.is_trusted, head, host).ok_or(Bypass::Fields)?;
        Ok(uri.with_fields(fields.as_bytes()))
    }

    /// The URI of a request with any method, as a key without fields.
    pub(crate) fn uri_of(route: &CachedRoute, arrival: Arrival, head: &RequestHead<'_>) -> Option<Key> {
        let authority = (head.host.unwrap_or_default(), head.port);
        // What clients ask for, not what a front controller is asked in its place: that is the same for many pages.
        let (path, query) = head.asked();
        Key::of_request(&route.rules.query, arrival.scheme, authority, path, query)
    }

    /// What is asked with a request; `target`: the path and the query that it was rewritten to, which follow from its key.
    /// `None`: the origin's form of the request exceeds `limits`.
    pub fn new(
        route: &Arc<CachedRoute>,
        AskKey { key, hash, is_trusted }: AskKey,
        head: &RequestHead<'_>,
        target: Option<(&[u8], Option<&[u8]>)>,
        limits: &HeadLimits,
    ) -> Option<Self> {
        let kept = head.keep();
        let mut codings = Vec::new();
        // A part is one of the bytes as they are: those of a coding differ each time that it is made.
        let accepted = head.accept_encoding.filter(|_| head.range.is_none());
        push_reduced_codings(&mut codings, AcceptedCodings::parse(accepted));
        // The host that is in the key: an absolute target may have named it, or one with the usual port.
        let more: [(&str, &[u8]); 2] = [("Host", key.authority()), ("Accept-Encoding", &codings)];
        let method = if head.method == Method::Head { "HEAD" } else { "GET" };
        let keeps = |name: &str| {
            let its_use = FieldUse::of(&route.rules, is_trusted, name.as_bytes());
            !is_same_field(name, "Host") && matches!(its_use, FieldUse::Forward | FieldUse::Key)
        };
        let asked = kept.rewritten(method, key.target(), keeps, &more, limits).ok()?;
        let forwarded = match target {
            Some((path, query)) => asked.get().with_target(path, query).keep(),
            None => asked,
        };
        Some(Self { route: Arc::clone(route), key, hash, head: kept, forwarded })
    }

    /// The request as it goes to the origin: without conditions and ranges, which the cache has of its own, and without
    /// what no key has.
    pub fn forwarded(&self) -> RequestHead<'_> {
        self.forwarded.get()
    }

    /// The byte that the client wants first; 0 where that depends on the length.
    pub(crate) fn first_byte(&self) -> u64 {
        match self.head.get().range.and_then(RangeSpec::only) {
            Some(RangeSpec::From { first, .. }) => first,
            _ => 0,
        }
    }

    /// The client's conditions and range, for a request that the cache only passes on.
    pub(crate) fn own_conditions(&self) -> impl Iterator<Item = (String, Vec<u8>)> {
        let head = self.head.get();
        let fields: Vec<_> = head
            .fields()
            .filter(|(name, _)| FieldUse::of(&self.route.rules, false, name.as_bytes()) == FieldUse::Rewrite)
            .filter(|(name, _)| !is_same_field(name, "Accept-Encoding"))
            .map(|(name, value)| (name.to_owned(), value.to_vec()))
            .collect();
        fields.into_iter()
    }
}
