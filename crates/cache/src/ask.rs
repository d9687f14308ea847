//! What the cache is asked: a request in the form in which it counts.

use std::sync::Arc;

use baton_http::{AcceptedCodings, HeadLimits, KeptHead, Method, RequestHead};
use baton_segment::next_segment;
use baton_segment::rules::{
    Asked, Bypass, FieldUse, Key, KeySecret, Scheme, field_use, push_reduced_codings,
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
}

impl CachedRoute {
    /// What a response to this request is found by.
    ///
    /// # Errors
    /// The cache has nothing to do with the request.
    pub fn key_of(&self, scheme: Scheme, head: &RequestHead<'_>) -> Result<Key, Bypass> {
        Asked::of(&self.rules, head)?;
        Ask::cachable_uri_of(self, scheme, head)
    }
}

impl Ask {
    /// The key of a request, which [may be answered](Asked::of) by the cache.
    ///
    /// # Errors
    /// The cache has nothing to do with its path.
    pub(crate) fn key_of(
        route: &CachedRoute,
        secret: &KeySecret,
        scheme: Scheme,
        head: &RequestHead<'_>,
    ) -> Result<AskKey, Bypass> {
        let key = Self::cachable_uri_of(route, scheme, head)?;
        let hash = Self::hash_of(route, secret, &key);
        Ok(AskKey { key, hash })
    }

    /// By which a key is found among those of all routes.
    pub(crate) fn hash_of(route: &CachedRoute, secret: &KeySecret, key: &Key) -> u64 {
        key.hash_within(secret, route.partition.as_bytes()).0 as u64
    }

    /// The key of the segment `steps` behind the one of a key, if its name counts.
    pub(crate) fn next_key(key: &Key, steps: u64) -> Option<Key> {
        let target = next_segment(key.target(), steps)?;
        let next = Key::from_bytes(&[key.origin(), &target].concat())?;
        (next.as_bytes().len() <= PurgeOrder::TEXT_BYTES_MAX).then_some(next)
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

    fn cachable_uri_of(route: &CachedRoute, scheme: Scheme, head: &RequestHead<'_>) -> Result<Key, Bypass> {
        let key = Self::uri_of(route, scheme, head).ok_or(Bypass::Path)?;
        // No purge could name it.
        if key.as_bytes().len() > PurgeOrder::TEXT_BYTES_MAX {
            return Err(Bypass::Path);
        }
        Ok(key)
    }

    /// The key of a request with any method.
    pub(crate) fn uri_of(route: &CachedRoute, scheme: Scheme, head: &RequestHead<'_>) -> Option<Key> {
        let authority = (head.host.unwrap_or_default(), head.port);
        // What clients ask for, not what a front controller is asked in its place: that is the same for many pages.
        let (path, query) = head.asked();
        Key::of_request(&route.rules.query, scheme, authority, path, query)
    }

    /// What is asked with a request; `target`: the path and the query that it was rewritten to, which follow from its key.
    /// `None`: the origin's form of the request exceeds `limits`.
    pub fn new(
        route: &Arc<CachedRoute>,
        AskKey { key, hash }: AskKey,
        head: &RequestHead<'_>,
        target: Option<(&[u8], Option<&[u8]>)>,
        limits: &HeadLimits,
    ) -> Option<Self> {
        let kept = head.keep();
        let mut codings = Vec::new();
        // A part is one of the bytes as they are: those of a coding differ each time that it is made.
        let accepted = head.accept_encoding.filter(|_| head.range.is_none());
        push_reduced_codings(&mut codings, AcceptedCodings::parse(accepted));
        let host = head.host.map(|host| match head.port {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        });
        // The host that is in the key, which an absolute target may have named.
        let mut more: Vec<(&str, &[u8])> = vec![("Host", host.as_deref().unwrap_or_default().as_bytes())];
        more.push(("Accept-Encoding", &codings));
        let method = if head.method == Method::Head { "HEAD" } else { "GET" };
        let keeps = |name: &str| {
            !name.eq_ignore_ascii_case("Host") && field_use(name.as_bytes()) == FieldUse::Forward
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

    /// The client's conditions and range, for a request that the cache only passes on.
    pub(crate) fn own_conditions(&self) -> impl Iterator<Item = (String, Vec<u8>)> {
        let head = self.head.get();
        let fields: Vec<_> = head
            .fields()
            .filter(|(name, _)| field_use(name.as_bytes()) == FieldUse::Rewrite)
            .filter(|(name, _)| !name.eq_ignore_ascii_case("Accept-Encoding"))
            .map(|(name, value)| (name.to_owned(), value.to_vec()))
            .collect();
        fields.into_iter()
    }
}
