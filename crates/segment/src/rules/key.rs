//! What a stored response is found by: the URI, in one form (RFC 9111 section 2).

use baton_http::origin::PathRule;
use baton_http::{Authority, push_decimal, without_root};
use siphasher::sip128::{Hasher128, SipHasher13};
use std::borrow::Cow;
use std::fmt;
use std::hash::Hasher;

/// How the client has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// In clear.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// The name in URIs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// How a request has come, as far as it is no part of its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// How the client has come: to this server, or to a trusted proxy in front of it.
    pub scheme: Scheme,
    /// Whether the other end of the connection is such a proxy.
    pub is_trusted: bool,
}

/// A URI as the cache knows it, `https://host/path?query`, and the fields that tell requests for it apart. GET and HEAD
/// share it.
///
/// Host, path and query are those that go to the origin. What the origin sees and the key lacks would let a client choose
/// the answer that others get.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// The URI; with [fields](super::KeyedFields), a line feed and their lines.
    text: Box<[u8]>,
    /// Where the path begins.
    path_at: u32,
    /// Where the URI ends.
    uri_end: u32,
}

impl Key {
    /// The key of a request, with what `rule` leaves of its query. `host` in any case, with brackets if it is an IPv6 address;
    /// path and query as the client has sent them. `None`: the path has no one form.
    pub fn of_request(
        rule: &QueryRule,
        scheme: Scheme,
        (host, port): (&str, Option<u16>),
        path: &[u8],
        query: Option<&[u8]>,
    ) -> Option<Self> {
        let host = without_root(host);
        let port = port.filter(|port| *port != scheme.default_port());
        let query = rule.normalise(query);
        let port_len = port.map_or(0, |port| ":".len() + port.checked_ilog10().unwrap_or(0) as usize + 1);
        let query_len = query.as_ref().map_or(0, |query| "?".len() + query.len());
        // Exactly, as a rule: a box of less than its capacity would be another allocation.
        let len = scheme.as_str().len() + "://".len() + host.len() + port_len + path.len() + query_len;
        let mut text = Vec::with_capacity(len);
        text.extend_from_slice(scheme.as_str().as_bytes());
        text.extend_from_slice(b"://");
        text.extend(host.bytes().map(|byte| byte.to_ascii_lowercase()));
        if let Some(port) = port {
            text.push(b':');
            push_decimal(&mut text, port.into());
        }
        // The longest head of a request is much shorter than 4 GiB.
        let path_at = text.len() as u32;
        PathRule::default().push_target(&mut text, path, query.as_deref()).ok()?;
        Some(Self { uri_end: text.len() as u32, text: text.into(), path_at })
    }

    /// The key of requests for the same URI with these [lines of fields](super::KeyedFields).
    #[must_use]
    pub fn with_fields(self, lines: &[u8]) -> Self {
        if lines.is_empty() {
            return self;
        }
        Self { text: [self.uri(), b"\n", lines].concat().into(), ..self }
    }

    /// The key of requests for another path and query with the same fields. `None`: there can be none.
    pub fn with_target(&self, target: &[u8]) -> Option<Self> {
        Self::from_bytes(&[self.origin(), target, &self.text[self.uri_end as usize..]].concat())
    }

    /// The key whose [bytes](Self::as_bytes) were kept. `None` if they are none of a key.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let uri_end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
        let host_at = memchr::memmem::find(&bytes[..uri_end], b"://")? + "://".len();
        let path_at = host_at + memchr::memchr2(b'/', b'?', &bytes[host_at..uri_end])?;
        Some(Self {
            text: bytes.into(),
            path_at: u32::try_from(path_at).ok()?,
            uri_end: u32::try_from(uri_end).ok()?,
        })
    }

    /// The key of an absolute URI, as an operator writes it. A fragment does not count. `None`: it is no URI of a host.
    pub fn of_uri(rule: &QueryRule, uri: &[u8]) -> Option<Self> {
        let uri = uri.split(|byte| *byte == b'#').next()?;
        let (scheme, rest) = [Scheme::Https, Scheme::Http].into_iter().find_map(|scheme| {
            let (start, rest) = uri.split_at_checked(scheme.as_str().len())?;
            let rest = rest.strip_prefix(b"://")?;
            start.eq_ignore_ascii_case(scheme.as_str().as_bytes()).then_some((scheme, rest))
        })?;
        let (authority, target) = split_authority(rest);
        Self::of_target(rule, scheme, authority, &target)
    }

    /// The key of a path with its query, at an authority. `None`: the path has no one form, or there is no host.
    pub(super) fn of_target(
        rule: &QueryRule,
        scheme: Scheme,
        authority: &[u8],
        target: &[u8],
    ) -> Option<Self> {
        let Authority { host, port } = Authority::parse(authority)?;
        let (path, query) = match memchr::memchr(b'?', target) {
            Some(mark) => (&target[..mark], Some(&target[mark + 1..])),
            None => (target, None),
        };
        Self::of_request(rule, scheme, (host, port), path, query)
    }

    /// The bytes to keep: the URI, and the fields behind it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    /// The URI, which purges name.
    pub fn uri(&self) -> &[u8] {
        &self.text[..self.uri_end as usize]
    }

    /// The lines of the fields that tell requests for the URI apart.
    pub fn fields(&self) -> &[u8] {
        self.text.get(self.uri_end as usize + 1..).unwrap_or_default()
    }

    /// Host and port.
    pub fn authority(&self) -> &[u8] {
        let origin = self.origin();
        &origin[memchr::memmem::find(origin, b"://").map_or(0, |at| at + "://".len())..]
    }

    /// Scheme, host and port: `https://host`.
    pub fn origin(&self) -> &[u8] {
        &self.text[..self.path_at as usize]
    }

    /// Path and query.
    pub fn target(&self) -> &[u8] {
        &self.text[self.path_at as usize..self.uri_end as usize]
    }

    /// Its hash.
    pub fn hash(&self, secret: &KeySecret) -> KeyHash {
        secret.hash(b"key", &[&self.text])
    }

    /// Its hash within a part of the cache that shares nothing with others.
    pub fn hash_within(&self, secret: &KeySecret, partition: &[u8]) -> KeyHash {
        secret.hash(b"key within", &[partition, &self.text])
    }
}

/// What follows `https://`: the authority, and path and query, which begin with a slash.
pub(super) fn split_authority(rest: &[u8]) -> (&[u8], Vec<u8>) {
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    let slash: &[u8] = if target.starts_with(b"/") { b"" } else { b"/" };
    (authority, [slash, target].concat())
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", String::from_utf8_lossy(&self.text))
    }
}

/// 128 bits in place of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyHash(pub u128);

/// The secret that makes hashes: random, and kept with the store, whose entries have them. Clients that do not know it
/// cannot make two keys meet.
#[derive(Clone)]
pub struct KeySecret([u8; 16]);

impl KeySecret {
    /// The secret of 16 random bytes.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The name of the `number`th content that is stored: no two have the same.
    pub fn content(&self, number: u64, started: u64) -> KeyHash {
        self.hash(b"content", &[&started.to_le_bytes(), &number.to_le_bytes()])
    }

    /// Hashes parts. `purpose` keeps hashes of different things apart.
    pub(super) fn hash(&self, purpose: &[u8], parts: &[&[u8]]) -> KeyHash {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        for part in [purpose].iter().chain(parts) {
            hasher.write(&(part.len() as u64).to_le_bytes());
            hasher.write(part);
        }
        KeyHash(hasher.finish128().as_u128())
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySecret(…)")
    }
}

/// What of a query counts. The same form is in the key and goes to the origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryRule {
    /// No query counts.
    pub is_ignored: bool,
    /// The order of parameters with different names does not count.
    pub is_sorted: bool,
    /// Names of parameters that do not count. One that ends with `*` stands for all that begin so.
    pub dropped: Vec<String>,
}

impl QueryRule {
    /// The query that counts. Allocates nothing unless the query changes.
    pub fn normalise<'a>(&self, query: Option<&'a [u8]>) -> Option<Cow<'a, [u8]>> {
        let query = query.filter(|_| !self.is_ignored)?;
        let parameters = || query.split(|byte| *byte == b'&');
        let drops = !self.dropped.is_empty() && parameters().any(|parameter| self.drops(name_of(parameter)));
        let sorts = self.is_sorted && !parameters().map(name_of).is_sorted();
        if !drops && !sorts {
            return Some(Cow::Borrowed(query));
        }
        let mut kept: Vec<_> = parameters().filter(|parameter| !self.drops(name_of(parameter))).collect();
        if self.is_sorted {
            // Stable: the order of values of one name may mean something.
            kept.sort_by_key(|parameter| name_of(parameter));
        }
        (!kept.is_empty()).then(|| Cow::Owned(kept.join(&b'&')))
    }

    fn drops(&self, name: &[u8]) -> bool {
        self.dropped.iter().any(|dropped| match dropped.strip_suffix('*') {
            Some(start) => name.starts_with(start.as_bytes()),
            None => name == dropped.as_bytes(),
        })
    }
}

fn name_of(parameter: &[u8]) -> &[u8] {
    &parameter[..memchr::memchr(b'=', parameter).unwrap_or(parameter.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(scheme: Scheme, host: &str, port: Option<u16>, path: &str, query: Option<&str>) -> String {
        let (rule, query) = (QueryRule::default(), query.map(str::as_bytes));
        let key = Key::of_request(&rule, scheme, (host, port), path.as_bytes(), query).unwrap();
        assert_eq!([key.origin(), key.target()].concat(), key.as_bytes());
        assert_eq!(Key::from_bytes(key.as_bytes()), Some(key.clone()));
        String::from_utf8(key.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn rfc9111_2_the_key_is_the_uri_in_one_form() {
        for (scheme, host, port, path, query, expected) in [
            (Scheme::Http, "A.Example", None, "/", None, "http://a.example/"),
            (Scheme::Http, "a", Some(80), "/B", Some(""), "http://a/B?"),
            (Scheme::Http, "A.Example.", None, "/", None, "http://a.example/"),
            (Scheme::Http, "a", Some(443), "/", Some("c=D"), "http://a:443/?c=D"),
            (Scheme::Https, "[::1]", Some(443), "/%2F//x", None, "https://[::1]/%2F//x"),
        ] {
            assert_eq!(key(scheme, host, port, path, query), expected);
        }
    }

    #[test]
    fn uris_of_operators_get_the_same_form() {
        let rule = QueryRule { dropped: vec!["s".into()], ..QueryRule::default() };
        for (uri, expected) in [
            ("HTTP://A.Example:80/b/../c?s=1&d#e", Some("http://a.example/c?d")),
            ("https://a", Some("https://a/")),
            ("https://a:8443?x", Some("https://a:8443/?x")),
            ("http://[::1]/\\", Some("http://[::1]/%5C")),
            ("http:///a", None),
            ("ftp://a/", None),
            ("//a/", None),
            ("/a", None),
            ("http://u@a/", None),
            ("http://a/../..", None),
        ] {
            let key = Key::of_uri(&rule, uri.as_bytes());
            assert_eq!(key, expected.map(|uri| Key::of_uri(&QueryRule::default(), uri.as_bytes()).unwrap()));
            assert_eq!(key.as_ref().map(Key::as_bytes), expected.map(str::as_bytes), "{uri}");
        }
    }

    #[test]
    fn hashes_depend_on_the_secret() {
        let key = Key::of_uri(&QueryRule::default(), b"http://a/").unwrap();
        let hashes = [[0; 16], [1; 16]].map(|secret| key.hash(&KeySecret::new(secret)));
        assert_ne!(hashes[0], hashes[1]);
        assert_eq!(key.hash(&KeySecret::new([1; 16])), hashes[1]);
        let secret = KeySecret::new([0; 16]);
        assert_ne!(secret.hash(b"a", &[b"b", b"c"]), secret.hash(b"a", &[b"bc", b""]));
    }

    #[test]
    fn queries_are_dropped_and_sorted_by_name() {
        let normal = |rule: &QueryRule, query: &str| {
            let text = rule.normalise(Some(query.as_bytes())).map(Cow::into_owned);
            text.map(|text| String::from_utf8(text).unwrap())
        };
        let all = QueryRule::default();
        assert_eq!(normal(&all, "b=1&a"), Some("b=1&a".into()));
        assert_eq!(normal(&QueryRule { is_ignored: true, ..all.clone() }, "b"), None);
        let sorted = QueryRule { is_sorted: true, ..all.clone() };
        assert_eq!(normal(&sorted, "b=2&a&b=1&a=0"), Some("a&a=0&b=2&b=1".into()));
        let dropped = QueryRule { dropped: vec!["utm_*".into(), "id".into()], ..all };
        assert_eq!(normal(&dropped, "utm_x=1&b&id=3&ids=4"), Some("b&ids=4".into()));
        assert_eq!(normal(&dropped, "utm_x&id"), None);
        assert_eq!(dropped.normalise(None), None);
        assert!(matches!(dropped.normalise(Some(b"b=1")), Some(Cow::Borrowed(b"b=1"))));
    }

    #[test]
    fn fields_are_a_part_of_the_key_and_not_of_the_uri() {
        let plain = Key::of_uri(&QueryRule::default(), b"http://a:81/b?c").unwrap();
        assert_eq!(plain.clone().with_fields(b""), plain);
        let key = plain.clone().with_fields(b"rsc:1\n");
        assert_ne!(key, plain);
        assert_eq!((key.uri(), key.target(), key.authority()), (plain.uri(), plain.target(), &b"a:81"[..]));
        assert_eq!((key.fields(), plain.fields()), (&b"rsc:1\n"[..], &b""[..]));
        assert_eq!(Key::from_bytes(key.as_bytes()), Some(key.clone()));
        assert_eq!(
            key.with_target(b"/d").map(|key| key.as_bytes().to_vec()),
            Some(b"http://a:81/d\nrsc:1\n".to_vec())
        );
        let secret = KeySecret::new([0; 16]);
        assert_ne!(key.hash_within(&secret, b"p"), plain.hash_within(&secret, b"p"));
    }

    proptest! {
        /// A normal query is its own normal form, and no parameter changes in it.
        #[test]
        fn normal_forms_are_stable(query in "[abc=&]{0,12}", is_sorted: bool, drop: bool) {
            let dropped = if drop { vec!["a".into()] } else { Vec::new() };
            let rule = QueryRule { is_ignored: false, is_sorted, dropped };
            let once = rule.normalise(Some(query.as_bytes()));
            prop_assert_eq!(rule.normalise(once.as_deref()), once.clone());
            let mut kept: Vec<_> = once.iter().flat_map(|text| text.split(|byte| *byte == b'&')).collect();
            let mut sent: Vec<_> = query.as_bytes().split(|byte| *byte == b'&').collect();
            sent.retain(|parameter| !rule.drops(name_of(parameter)));
            kept.sort_unstable();
            sent.sort_unstable();
            prop_assert_eq!(kept, sent);
        }
    }
}
