//! The directives of Cache-Control, in requests and in responses (RFC 9111 section 5.2).
//!
//! A directive that restricts counts in whatever form it comes. One that permits counts in the form of the grammar only.

use baton_http::{RequestHead, is_token_byte, parse_decimal};

/// A number of seconds in a directive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delta {
    /// The directive is not there.
    #[default]
    Absent,
    /// At most [`SECONDS_MAX`].
    Seconds(u32),
    /// The directive has no number, or comes twice with different ones: the response is stale (RFC 9111 section 4.2.1).
    Invalid,
}

impl Delta {
    /// The seconds; 0 if they are invalid.
    pub const fn seconds(self) -> Option<u32> {
        match self {
            Self::Absent => None,
            Self::Seconds(seconds) => Some(seconds),
            Self::Invalid => Some(0),
        }
    }

    /// Adds another directive of the same name.
    fn join(&mut self, other: Self) {
        *self = match *self {
            Self::Absent => other,
            same if same == other => same,
            _ => Self::Invalid,
        };
    }
}

/// The directives of a response that a shared cache obeys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseDirectives {
    /// `no-store`.
    pub no_store: bool,
    /// `no-cache` without field names.
    pub no_cache: bool,
    /// `private` without field names.
    pub private: bool,
    /// `public`.
    pub public: bool,
    /// `must-revalidate`.
    pub must_revalidate: bool,
    /// `proxy-revalidate`: the same for shared caches, but it does not let them store what needs a password.
    pub proxy_revalidate: bool,
    /// `must-understand`.
    pub must_understand: bool,
    /// `max-age`.
    pub max_age: Delta,
    /// `s-maxage`.
    pub s_maxage: Delta,
    /// `stale-while-revalidate` (RFC 5861 section 3).
    pub stale_while_revalidate: Delta,
    /// `stale-if-error` (RFC 5861 section 4).
    pub stale_if_error: Delta,
    /// Fields that `no-cache="…"` and `private="…"` name: they are not stored.
    pub withheld: Vec<Box<[u8]>>,
    /// A quoted string does not end where a member does: what follows its quotes may be directives or not.
    pub is_malformed: bool,
}

impl ResponseDirectives {
    /// Reads the values of all Cache-Control fields.
    pub fn parse<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut directives = Self::default();
        for directive in values.flat_map(Directives::of) {
            directives.add(directive);
        }
        directives
    }

    fn add(&mut self, directive: Directive<'_>) {
        let Directive { name, argument } = directive;
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        let has_none = argument == Argument::None;
        self.is_malformed |= argument == Argument::Ambiguous;
        match name.len() {
            6 if is("public") => self.public |= has_none,
            7 if is("private") => self.private |= !self.withhold(argument),
            7 if is("max-age") => self.max_age.join(argument.delta()),
            8 if is("no-store") => self.no_store = true,
            8 if is("no-cache") => self.no_cache |= !self.withhold(argument),
            8 if is("s-maxage") => self.s_maxage.join(argument.delta()),
            14 if is("stale-if-error") => self.stale_if_error.join(argument.delta()),
            15 if is("must-revalidate") => self.must_revalidate = true,
            15 if is("must-understand") => self.must_understand |= has_none,
            16 if is("proxy-revalidate") => self.proxy_revalidate = true,
            22 if is("stale-while-revalidate") => self.stale_while_revalidate.join(argument.delta()),
            _ => {}
        }
    }

    /// Takes the field names of a qualified directive. Returns `false` if it has none, or something else.
    fn withhold(&mut self, argument: Argument<'_>) -> bool {
        let Argument::Text(text) = argument else { return false };
        self.withhold_names(text)
    }

    /// Adds the field names of a list. Returns `false`, and adds nothing, if it is not one.
    pub(super) fn withhold_names(&mut self, list: &[u8]) -> bool {
        let names =
            || list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|name| !name.is_empty());
        let is_list = names().next().is_some() && names().all(is_token);
        if is_list {
            self.withheld.extend(names().map(Box::from));
        }
        is_list
    }
}

/// The directives of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestDirectives {
    /// `no-cache`, or `Pragma: no-cache` without any Cache-Control (RFC 9111 section 5.4).
    pub no_cache: bool,
    /// `no-store`.
    pub no_store: bool,
    /// `only-if-cached`.
    pub only_if_cached: bool,
    /// `max-age`, in seconds.
    pub max_age: Option<u32>,
    /// `max-stale`, in seconds; [`SECONDS_MAX`] without a number.
    pub max_stale: Option<u32>,
    /// `min-fresh`, in seconds.
    pub min_fresh: Option<u32>,
    /// `stale-if-error`, in seconds (RFC 5861 section 4).
    pub stale_if_error: Option<u32>,
}

impl RequestDirectives {
    /// Reads the fields of a request. Walks over its head once at most, and allocates nothing.
    pub fn of(head: &RequestHead<'_>) -> Self {
        let mut directives = Self::default();
        if !["Pragma", "Cache-Control"].iter().any(|name| head.may_have(name)) {
            return directives;
        }
        let (mut has_cache_control, mut pragma) = (false, false);
        for (name, value) in head.fields() {
            match name.len() {
                6 if name.eq_ignore_ascii_case("Pragma") => {
                    pragma |=
                        Directives::of(value).any(|pragma| pragma.name.eq_ignore_ascii_case(b"no-cache"));
                }
                13 if name.eq_ignore_ascii_case("Cache-Control") => {
                    has_cache_control = true;
                    Directives::of(value).for_each(|directive| directives.add(directive));
                }
                _ => {}
            }
        }
        directives.no_cache |= pragma && !has_cache_control;
        directives
    }

    fn add(&mut self, directive: Directive<'_>) {
        let Directive { name, argument } = directive;
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        let delta = argument.delta();
        match name.len() {
            7 if is("max-age") => self.max_age = lesser(self.max_age, delta.seconds()),
            8 if is("no-cache") => self.no_cache = true,
            8 if is("no-store") => self.no_store = true,
            9 if is("max-stale") => {
                let any = (argument == Argument::None).then_some(SECONDS_MAX);
                self.max_stale = lesser(self.max_stale, any.or(delta.seconds()));
            }
            9 if is("min-fresh") => {
                // A number that cannot be read asks for more than there is.
                let seconds = if delta == Delta::Invalid { Some(SECONDS_MAX) } else { delta.seconds() };
                self.min_fresh = self.min_fresh.max(seconds);
            }
            14 if is("only-if-cached") => self.only_if_cached = true,
            14 if is("stale-if-error") => self.stale_if_error = lesser(self.stale_if_error, delta.seconds()),
            _ => {}
        }
    }
}

fn lesser(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    one.into_iter().chain(other).min()
}

/// One member of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Directive<'a> {
    name: &'a [u8],
    argument: Argument<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Argument<'a> {
    None,
    /// A token, or what stands between quotes.
    Text(&'a [u8]),
    /// Neither of both.
    Malformed,
    /// A quoted string without its second quote, or with more behind it.
    Ambiguous,
}

impl Argument<'_> {
    fn delta(self) -> Delta {
        match self {
            Self::Text(digits) if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
                let seconds = parse_decimal(digits).and_then(|seconds| u32::try_from(seconds).ok());
                Delta::Seconds(seconds.unwrap_or(SECONDS_MAX).min(SECONDS_MAX))
            }
            _ => Delta::Invalid,
        }
    }
}

/// The members of one field value.
#[derive(Clone, Copy, Debug)]
struct Directives<'a> {
    rest: &'a [u8],
}

impl<'a> Directives<'a> {
    const fn of(value: &'a [u8]) -> Self {
        Self { rest: value }
    }

    /// Takes the argument, up to the comma behind it.
    fn argument(&mut self) -> Argument<'a> {
        let Some(quoted) = self.rest.strip_prefix(b"\"") else {
            let text = self.up_to_comma();
            return if is_token(text) { Argument::Text(text) } else { Argument::Malformed };
        };
        let mut at = 0;
        let mut has_escape = false;
        loop {
            match quoted.get(at) {
                None => {
                    self.rest = b"";
                    return Argument::Ambiguous;
                }
                Some(b'"') => break,
                Some(b'\\') => {
                    has_escape = true;
                    at += 2;
                }
                Some(_) => at += 1,
            }
        }
        self.rest = &quoted[at + 1..];
        if !self.up_to_comma().is_empty() {
            return Argument::Ambiguous;
        }
        // No name and no number needs an escape.
        if has_escape { Argument::Malformed } else { Argument::Text(&quoted[..at]) }
    }

    /// Takes the text up to the next comma, without the blanks behind it.
    fn up_to_comma(&mut self) -> &'a [u8] {
        let end = memchr::memchr(b',', self.rest).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        text.trim_ascii_end()
    }
}

impl<'a> Iterator for Directives<'a> {
    type Item = Directive<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b','))?;
        self.rest = &self.rest[start..];
        let end = memchr::memchr2(b',', b'=', self.rest).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        let Some(argument) = rest.strip_prefix(b"=") else {
            return Some(Directive { name: name.trim_ascii_end(), argument: Argument::None });
        };
        self.rest = argument;
        let argument = self.argument();
        // No blank stands around the sign.
        let is_apart = name.trim_ascii_end().len() < name.len() && argument != Argument::Ambiguous;
        let argument = if is_apart { Argument::Malformed } else { argument };
        Some(Directive { name: name.trim_ascii_end(), argument })
    }
}

fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().copied().all(is_token_byte)
}

/// What larger numbers count as: 68 years (RFC 9111 section 1.2.2).
pub const SECONDS_MAX: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;
    use baton_http::HeadLimits;
    use proptest::prelude::*;

    fn response(lines: &[&str]) -> ResponseDirectives {
        ResponseDirectives::parse(lines.iter().map(|line| line.as_bytes()))
    }

    fn request(fields: &str) -> RequestDirectives {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        RequestDirectives::of(&RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap())
    }

    #[test]
    fn rfc9111_5_2_2_directives_are_found_in_any_case_and_order() {
        let all = response(&["PUBLIC, Max-Age=60 ,,s-maxage=\"30\"", "x=\"no-store\", stale-if-error=5, y"]);
        let expected = ResponseDirectives {
            public: true,
            max_age: Delta::Seconds(60),
            s_maxage: Delta::Seconds(30),
            stale_if_error: Delta::Seconds(5),
            ..ResponseDirectives::default()
        };
        assert_eq!(all, expected);
        assert!(response(&["no-store=1"]).no_store && response(&["No-Cache=?1"]).no_cache);
        assert!(response(&["must-revalidate=0"]).must_revalidate);
        assert!(response(&["Proxy-Revalidate"]).proxy_revalidate);
        assert!(!response(&["public=no"]).public && !response(&["must-understand=0"]).must_understand);
        assert_eq!(response(&["", ",", "=", "=a", "no-stores"]), ResponseDirectives::default());
    }

    #[test]
    fn rfc9111_1_2_2_delta_seconds() {
        for (text, expected) in [
            ("max-age=0", Delta::Seconds(0)),
            ("max-age=003600", Delta::Seconds(3600)),
            ("max-age=2147483648", Delta::Seconds(SECONDS_MAX)),
            ("max-age=99999999999999999999999", Delta::Seconds(SECONDS_MAX)),
            ("max-age=\"60\"", Delta::Seconds(60)),
            ("max-age='60'", Delta::Invalid),
            ("max-age", Delta::Invalid),
            ("max-age=", Delta::Invalid),
            ("max-age=\"\"", Delta::Invalid),
            ("max-age=-1", Delta::Invalid),
            ("max-age=60.0", Delta::Invalid),
            ("max-age=60a", Delta::Invalid),
            ("max-age=60 a", Delta::Invalid),
            ("max-age = 60", Delta::Invalid),
            ("max-age =60", Delta::Invalid),
            ("max-age= 60", Delta::Invalid),
            ("max-age=\"60\"a", Delta::Invalid),
            ("max-age=\"6\\0\"", Delta::Invalid),
            ("max-age=60, max-age=60", Delta::Seconds(60)),
            ("max-age=60, max-age=61", Delta::Invalid),
            ("max-age=60, max-age=x", Delta::Invalid),
            ("xmax-age=60", Delta::Absent),
            ("a=\"max-age=60\", b=\"\\\", max-age=60\"", Delta::Absent),
            ("a=\"b\", max-age=60", Delta::Seconds(60)),
        ] {
            assert_eq!(response(&[text]).max_age, expected, "{text}");
        }
        assert_eq!(response(&["max-age=1", "max-age=2"]).max_age, Delta::Invalid);
    }

    #[test]
    fn a_quote_in_the_wrong_place_makes_the_field_malformed() {
        assert!(response(&["max-age=60, a=\"b, no-store"]).is_malformed);
        assert!(response(&["a =\"b"]).is_malformed && response(&["a=\"b\\"]).is_malformed);
        assert!(response(&["a=\", no-store=\"b\""]).is_malformed && response(&["a=\"b\"c"]).is_malformed);
        assert!(!response(&["a=b\"c, d=\"e\", \"f"]).is_malformed);
    }

    #[test]
    fn rfc9111_5_2_2_4_qualified_directives_withhold_fields() {
        let both = response(&["no-cache=\"Set-Cookie, A\", private=b, max-age=1"]);
        assert!(!both.no_cache && !both.private);
        assert_eq!(both.withheld, [&b"Set-Cookie"[..], b"A", b"b"].map(Box::from));
        for text in [
            "no-cache=\"\"",
            "no-cache=\",\"",
            "no-cache=\"a b\"",
            "no-cache=\"a\"b",
            "no-cache=\"a",
            "no-cache=",
        ] {
            let directives = response(&[text]);
            assert!(directives.no_cache && directives.withheld.is_empty(), "{text}");
        }
        assert!(response(&["private, private=\"a\""]).private);
    }

    #[test]
    fn rfc9111_5_2_1_directives_of_requests() {
        let all =
            request("Cache-Control: Max-Age=5, max-stale, min-fresh=7\r\nCache-Control: only-if-cached\r\n");
        let expected = RequestDirectives {
            only_if_cached: true,
            max_age: Some(5),
            max_stale: Some(SECONDS_MAX),
            min_fresh: Some(7),
            ..RequestDirectives::default()
        };
        assert_eq!(all, expected);
        let odd = request("Cache-Control: max-age=x, max-stale=x, min-fresh=x, max-age=9\r\n");
        assert_eq!((odd.max_age, odd.max_stale, odd.min_fresh), (Some(0), Some(0), Some(SECONDS_MAX)));
        assert!(request("Cache-Control: no-store, no-cache\r\n").no_store);
    }

    #[test]
    fn rfc9111_5_4_pragma_counts_where_cache_control_is_missing() {
        assert!(request("Pragma: x, No-Cache\r\n").no_cache);
        assert!(!request("Pragma: no-cache\r\nCache-Control: max-age=5\r\n").no_cache);
        assert!(!request("Pragma: cache\r\n").no_cache);
    }

    proptest! {
        /// Any bytes are read; a directive in front, and one behind whole quoted strings, is always found.
        #[test]
        fn the_parser_is_total(before: Vec<u8>, inner in "[a-z=, \\\\]{0,12}") {
            let _ = ResponseDirectives::parse([&before[..]].into_iter());
            let line = [b"no-store,", &before[..]].concat();
            prop_assert!(ResponseDirectives::parse([&line[..]].into_iter()).no_store);
            let inner = inner.replace('\\', "\\\"");
            let line = format!("x=\"{inner}\", no-store");
            prop_assert!(response(&[&line]).no_store, "{}", line);
            let line = format!("x=\"no-store, {inner}\"");
            prop_assert!(!response(&[&line]).no_store, "{}", line);
        }
    }
}
