//! What an origin has at a URI.

use std::ops::Range;

/// What an origin has at a URI, as its name says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resource {
    pub(crate) name: u32,
    len: usize,
    /// Whether responses say their length.
    pub(crate) has_length: bool,
    pub(crate) validator: Validator,
    /// `Cache-Control`.
    pub(crate) control: &'static str,
    /// How long a response may be used by that, whatever happens.
    pub(crate) lifetime_s: u64,
    /// A field that keeps responses from being shared.
    pub(crate) field: &'static str,
    /// Whether each request has a response of its own.
    pub(crate) is_private: bool,
    /// Whether it depends on the field `X-Kind`.
    pub(crate) varies: bool,
    pub(crate) ranges: Ranges,
    /// How long a version is the current one.
    period_s: u64,
    /// How many responses in a hundred fail.
    pub(crate) fault_percent: u8,
}

/// Which of the bytes that a resource has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) number: u64,
    pub(crate) kind: String,
    /// Number of the request that it is for, or 0.
    pub(crate) owner: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Validator {
    Strong,
    Weak,
    Date,
    Nothing,
}

/// What an origin does with a `Range`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ranges {
    Honoured,
    Ignored,
    /// It sends another part than the one that was asked for, and says so.
    Misplaced,
    /// It gives another total.
    OtherTotal,
}

impl Resource {
    pub(crate) fn of(name: u32) -> Self {
        let mut random = fastrand::Rng::with_seed(name.into());
        let mut one = |count: usize| random.usize(0..count);
        let is_private = one(5) == 0;
        let (control, lifetime_s) = CONTROLS[one(CONTROLS.len())];
        let (control, field) = if is_private { PRIVATE[one(PRIVATE.len())] } else { (control, "") };
        Self {
            name,
            len: LENGTHS[one(LENGTHS.len())],
            has_length: one(3) > 0,
            validator: [
                Validator::Strong,
                Validator::Strong,
                Validator::Weak,
                Validator::Date,
                Validator::Nothing,
            ][one(5)],
            control,
            lifetime_s: if is_private { 0 } else { lifetime_s },
            field,
            is_private,
            varies: one(3) == 0,
            ranges: [
                Ranges::Honoured,
                Ranges::Honoured,
                Ranges::Honoured,
                Ranges::Ignored,
                Ranges::Misplaced,
                Ranges::OtherTotal,
            ][one(6)],
            period_s: [1, 4, 30, ALWAYS_S][one(4)],
            fault_percent: [0, 0, 10, 40][one(4)],
        }
    }

    /// Whether all may have a response, which nothing but a POST makes unusable for as long as a world lasts. Not one with a
    /// date alone: this origin ignores `If-Range` with a date, and sends the whole once more instead of a part.
    pub(crate) fn is_lasting(&self) -> bool {
        let is_shared = !self.is_private && self.control == LASTING && self.fault_percent == 0;
        let has_parts = self.ranges == Ranges::Honoured && self.validator != Validator::Date;
        is_shared && self.has_length && has_parts && self.period_s == ALWAYS_S
    }

    /// The current version's number.
    pub(crate) fn number_at(&self, now_ms: u64) -> u64 {
        now_ms / 1000 / self.period_s
    }

    /// When a version became the current one, in seconds of the world's clock.
    pub(crate) fn since_s(&self, version: &Version) -> u64 {
        version.number * self.period_s
    }

    pub(crate) fn etag(&self, version: &Version) -> Option<String> {
        let tag = format!("\"{}-{}-{}\"", version.number, version.kind, version.owner);
        match self.validator {
            Validator::Strong => Some(tag),
            Validator::Weak => Some(format!("W/{tag}")),
            Validator::Date | Validator::Nothing => None,
        }
    }

    pub(crate) fn content(&self, version: &Version) -> Vec<u8> {
        let len = if self.len == 0 { 0 } else { self.len + (version.number % 5) as usize * 3 };
        let mut content = vec![0; len];
        let kind = version.kind.bytes().fold(0, |sum, byte| sum * 256 + u64::from(byte));
        let parts = [u64::from(self.name), version.number, kind, version.owner as u64];
        let seed =
            parts.into_iter().fold(0, |seed: u64, part| seed.wrapping_mul(1_000_003).wrapping_add(part));
        fastrand::Rng::with_seed(seed).fill(&mut content);
        content
    }

    /// About the length of its content.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// The one range of a field, if it is in so many bytes.
pub(crate) fn range_in(field: &str, len: usize) -> Option<Range<usize>> {
    let (first, last) = field.strip_prefix("bytes=")?.split_once('-')?;
    if first.is_empty() {
        let count: usize = last.parse().ok()?;
        return (count > 0 && len > 0).then(|| len - count.min(len)..len);
    }
    let first = first.parse().ok()?;
    let end = if last.is_empty() { len } else { last.parse::<usize>().ok()?.saturating_add(1).min(len) };
    (first < end).then_some(first..end)
}

/// Longer than any world lasts.
const ALWAYS_S: u64 = 1 << 40;

const LASTING: &str = "max-age=60";

const LENGTHS: [usize; 6] = [0, 100, 5_000, 30_000, 120_000, 300_000];

/// Values of `Cache-Control`, and for how many seconds they let a response be used.
const CONTROLS: [(&str, u64); 6] = [
    ("max-age=1", 1),
    ("max-age=5", 5),
    (LASTING, 60),
    ("no-cache", 0),
    ("max-age=1, stale-while-revalidate=5", 6),
    ("max-age=1, stale-if-error=10", 11),
];

/// What keeps responses from being shared.
const PRIVATE: [(&str, &str); 4] = [
    ("private, max-age=60", ""),
    ("no-store", ""),
    ("max-age=60", "Set-Cookie: own=yes\r\n"),
    ("max-age=60", "Vary: *\r\n"),
];
