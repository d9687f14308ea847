//! Content codings, and which of them a client accepts (RFC 9110 sections 8.4.1 and 12.5.3).

use crate::fields::list_members;
use std::cmp::Reverse;

/// How a representation is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// Not at all.
    Identity,
    /// gzip (RFC 1952).
    Gzip,
    /// Brotli (RFC 7932).
    Brotli,
    /// Zstandard (RFC 8878).
    Zstd,
}

impl Coding {
    /// The name in Content-Encoding and Accept-Encoding.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// The extension of a precompressed file's name; empty for identity.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Identity => "",
            Self::Gzip => ".gz",
            Self::Brotli => ".br",
            Self::Zstd => ".zst",
        }
    }
}

/// The codings that a client accepts, best first. Four bytes, so it can be part of a cache's key: different spellings
/// of the same preferences are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AcceptedCodings {
    order: [Option<Coding>; BY_DENSITY.len()],
}

impl AcceptedCodings {
    /// Only identity, for a client that sends no Accept-Encoding.
    pub const IDENTITY: Self = Self { order: [Some(Coding::Identity), None, None, None] };

    /// Reads an Accept-Encoding field. Higher qualities come first; among equals the denser coding: br, zstd, gzip,
    /// identity. Identity is accepted unless refused, but comes last without a quality of its own. Malformed members
    /// are ignored.
    pub fn parse(field: Option<&[u8]>) -> Self {
        let Some(field) = field else {
            return Self::IDENTITY;
        };
        let qualities = Qualities::parse(field);
        let mut ranked = BY_DENSITY.map(|coding| match qualities.of(coding) {
            Some(0) => (0, None),
            Some(quality) => (quality, Some(coding)),
            None => (0, (coding == Coding::Identity).then_some(coding)),
        });
        // Stable, so equals stay in the order of density; codings that are not accepted come last.
        ranked.sort_by_key(|(quality, coding)| (coding.is_none(), Reverse(*quality)));
        Self { order: ranked.map(|(_, coding)| coding) }
    }

    /// The accepted codings, best first. Empty if the client refuses all that Baton knows.
    pub fn in_order(self) -> impl Iterator<Item = Coding> {
        self.order.into_iter().flatten()
    }

    /// Whether the client accepts this coding.
    pub fn accepts(self, coding: Coding) -> bool {
        self.order.contains(&Some(coding))
    }
}

impl Default for AcceptedCodings {
    fn default() -> Self {
        Self::IDENTITY
    }
}

/// The coding that the client prefers by its Accept-Encoding field, of those on offer. Among equals the first offer
/// comes first. `None`: it prefers the body as it is, or accepts none of them.
pub fn preferred_coding(field: Option<&[u8]>, offers: &[Coding]) -> Option<Coding> {
    let qualities = Qualities::parse(field?);
    let offered = offers.iter().map(|coding| (qualities.of(*coding).unwrap_or(0), *coding));
    // The last of several greatest would win, and the first is wanted.
    let (quality, best) = offered.rev().max_by_key(|(quality, _)| *quality)?;
    let is_liked = quality > 0 && quality >= qualities.named(Coding::Identity).unwrap_or(0);
    (is_liked && best != Coding::Identity).then_some(best)
}

/// What an Accept-Encoding field says of each coding, in thousandths.
struct Qualities {
    /// In the order of [`BY_DENSITY`].
    named: [Option<u16>; BY_DENSITY.len()],
    wildcard: Option<u16>,
}

impl Qualities {
    fn parse(field: &[u8]) -> Self {
        let mut qualities = Self { named: [None; BY_DENSITY.len()], wildcard: None };
        for member in list_members(field) {
            let (token, parameter) = match memchr::memchr(b';', member) {
                None => (member, None),
                Some(at) => (member[..at].trim_ascii_end(), Some(member[at + 1..].trim_ascii_start())),
            };
            let Some(quality) = parameter.map_or(Some(QUALITY_MAX), parse_quality) else {
                continue;
            };
            if token == b"*" {
                qualities.wildcard.get_or_insert(quality);
            } else if let Some(place) = BY_DENSITY.iter().position(|coding| is_named(*coding, token)) {
                qualities.named[place].get_or_insert(quality);
            }
        }
        qualities
    }

    /// Of the coding by its name.
    fn named(&self, coding: Coding) -> Option<u16> {
        BY_DENSITY.iter().position(|other| *other == coding).and_then(|place| self.named[place])
    }

    /// Of the coding, by its name or as one of all others.
    fn of(&self, coding: Coding) -> Option<u16> {
        self.named(coding).or(self.wildcard)
    }
}

fn is_named(coding: Coding, token: &[u8]) -> bool {
    token.eq_ignore_ascii_case(coding.token().as_bytes())
        // RFC 9110 section 8.4.1.3: an alias.
        || (coding == Coding::Gzip && token.eq_ignore_ascii_case(b"x-gzip"))
}

/// `q=0.5` in thousandths (RFC 9110 section 12.4.2).
pub(crate) fn parse_quality(parameter: &[u8]) -> Option<u16> {
    let [b'q' | b'Q', b'=', whole @ (b'0' | b'1'), rest @ ..] = parameter else {
        return None;
    };
    let decimals = match rest {
        [] => rest,
        [b'.', decimals @ ..] if decimals.len() <= 3 && decimals.iter().all(u8::is_ascii_digit) => decimals,
        _ => return None,
    };
    let digit = |place: usize| decimals.get(place).map_or(0, |digit| u16::from(digit - b'0'));
    let quality = u16::from(whole - b'0') * QUALITY_MAX + digit(0) * 100 + digit(1) * 10 + digit(2);
    (quality <= QUALITY_MAX).then_some(quality)
}

/// The order among equals: the denser first. gzip's only advantage is its ubiquity.
const BY_DENSITY: [Coding; 4] = [Coding::Brotli, Coding::Zstd, Coding::Gzip, Coding::Identity];

/// The quality of a member without one.
pub(crate) const QUALITY_MAX: u16 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn order(field: &str) -> String {
        let tokens: Vec<_> =
            AcceptedCodings::parse(Some(field.as_bytes())).in_order().map(Coding::token).collect();
        tokens.join(" ")
    }

    #[test]
    fn quality_decides_and_density_among_equals() {
        for (field, expected) in [
            ("gzip, deflate, br, zstd", "br zstd gzip identity"),
            ("gzip", "gzip identity"),
            ("GZIP;Q=0.5 , x , br ; q=0.4", "gzip br identity"),
            ("x-gzip", "gzip identity"),
            ("", "identity"),
            ("deflate", "identity"),
            ("br;q=0.001, gzip;q=0.002, zstd;q=1.000", "zstd gzip br identity"),
            ("identity, gzip;q=0.5", "identity gzip"),
            ("identity, gzip", "gzip identity"),
            ("identity;q=0.5, gzip;q=0.5", "gzip identity"),
            ("gzip;q=0", "identity"),
            ("identity;q=0, gzip", "gzip"),
            ("*", "br zstd gzip identity"),
            ("*;q=0", ""),
            ("*;q=0, gzip", "gzip"),
            ("gzip;q=0.2, *;q=0.1", "gzip br zstd identity"),
            ("br;q=0, *", "zstd gzip identity"),
            ("identity;q=0", ""),
            ("gzip, gzip;q=0", "gzip identity"),
        ] {
            assert_eq!(order(field), expected, "{field}");
        }
    }

    #[test]
    fn of_several_offers_the_first_of_the_best_is_chosen() {
        use Coding::{Brotli, Gzip, Identity, Zstd};
        for (field, offers, expected) in [
            ("gzip, br, zstd", &[Zstd, Brotli, Gzip][..], Some(Zstd)),
            ("gzip, br, zstd", &[Gzip, Zstd], Some(Gzip)),
            ("gzip, br;q=0.5", &[Brotli, Gzip], Some(Gzip)),
            ("identity;q=0.5, gzip;q=0.5", &[Gzip], Some(Gzip)),
            ("identity;q=0.6, gzip;q=0.5", &[Gzip], None),
            ("gzip;q=0, *", &[Gzip, Brotli], Some(Brotli)),
            ("*;q=0, identity;q=0", &[Gzip], None),
            ("identity;q=0", &[Gzip], None),
            ("identity;q=0, *;q=0.1", &[Gzip], Some(Gzip)),
            ("gzip", &[], None),
            ("*", &[Identity], None),
        ] {
            assert_eq!(preferred_coding(Some(field.as_bytes()), offers), expected, "{field}");
        }
        assert_eq!(preferred_coding(None, &[Gzip]), None);
    }

    #[test]
    fn malformed_members_are_ignored() {
        for member in
            ["br;q=2", "br;q=1.001", "br;q=", "br;q=0.1234", "br;q=.5", "br;q=-1", "br;x=1", "br;q=a", "b r"]
        {
            assert_eq!(order(&format!("{member}, gzip")), "gzip identity", "{member}");
        }
    }

    #[test]
    fn without_the_field_only_identity_is_sent() {
        assert_eq!(AcceptedCodings::parse(None), AcceptedCodings::IDENTITY);
        assert!(AcceptedCodings::IDENTITY.accepts(Coding::Identity));
        assert!(!AcceptedCodings::IDENTITY.accepts(Coding::Gzip));
        assert_eq!(size_of::<AcceptedCodings>(), 4);
    }
}
