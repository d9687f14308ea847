//! The names by which a request is found again: its id, and the trace that it belongs to (W3C Trace Context).
//!
//! They are fields of the request's head from here on, so that the log, applications and origins get the same ones, and the id
//! is a field of the response.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;

use baton_http::{HeadLimits, KeptHead, Refusal, RequestHead};
use baton_passport::parcel::{Packer, Unpacker};

use crate::address_range::AddressSet;

/// How the requests of a site are marked.
#[derive(Clone, Debug)]
pub struct Marking {
    /// `None`: requests get no id.
    pub id: Option<IdRule>,
    /// Whether a request that belongs to no trace begins one.
    pub begins_traces: bool,
}

/// How requests get their ids.
#[derive(Clone, Debug)]
pub struct IdRule {
    /// The name of the field.
    pub field: String,
    /// Whose ids are taken.
    pub trust: Believed,
}

/// The clients whose words are believed.
#[derive(Clone, Debug)]
pub enum Believed {
    /// None.
    None,
    /// All.
    All,
    /// These.
    Some(AddressSet),
}

/// The marks of a request.
#[derive(Debug)]
pub struct Mark {
    /// The field with the id, and its name's length.
    field: Option<(String, usize)>,
    trace: Option<String>,
}

impl Mark {
    /// The id, if requests have one.
    pub fn request_id(&self) -> Option<&str> {
        self.field.as_ref().map(|(field, name_len)| &field[name_len + ": ".len()..])
    }

    /// The trace that the request belongs to, if it is known.
    pub fn trace_id(&self) -> Option<&str> {
        self.trace.as_deref()
    }

    /// The name of the field that the response gets.
    pub fn response_field(&self) -> Option<(&str, &str)> {
        let (field, name_len) = self.field.as_ref()?;
        Some((&field[..*name_len], &field[name_len + ": ".len()..]))
    }

    /// Packs them for the process that writes the line of the request.
    pub fn pack(&self, packer: &mut Packer) {
        let field = self.response_field();
        packer.maybe_bytes(field.map(|(name, _)| name.as_bytes()));
        packer.maybe_bytes(field.map(|(_, id)| id.as_bytes()));
        packer.maybe_bytes(self.trace.as_deref().map(str::as_bytes));
    }

    /// What another process has packed. `None`: it has packed something else.
    pub fn unpack(packed: &mut Unpacker<'_>) -> Option<Self> {
        let (name, id) = (packed.maybe_text()?, packed.maybe_text()?);
        let field = name.zip(id).map(|(name, id)| (format!("{name}: {id}"), name.len()));
        Some(Self { field, trace: packed.maybe_text()?.map(str::to_owned) })
    }
}

impl Marking {
    /// The marks of a request, and its head with them. `client`: its address; `None`: a client of a Unix socket.
    ///
    /// # Errors
    /// The head breaks the limits. It has kept them before.
    pub fn mark(
        &self,
        ids: &mut Ids,
        client: Option<IpAddr>,
        head: &RequestHead<'_>,
        limits: &HeadLimits,
    ) -> Result<(Arc<Mark>, KeptHead), Refusal> {
        let mut fields: Vec<(&str, String)> = Vec::new();
        let id = self.id.as_ref().map(|rule| {
            let given = rule.trust.believes(client).then(|| head.only_field(&rule.field)).flatten();
            (rule, given.filter(|id| is_id(id)).map_or_else(|| hex(ids.draw()), str::to_owned))
        });
        if let Some((rule, id)) = &id {
            fields.push((&rule.field, id.clone()));
        }
        let given = head.only_field(TRACEPARENT).and_then(trace_of);
        let mut trace = given.map(str::to_owned);
        let mut dropped: &[&str] = &[];
        if trace.is_none() && self.begins_traces {
            let own = hex(ids.draw() | 1);
            let parent = hex(ids.draw() | 1);
            fields.push((TRACEPARENT, format!("00-{own}-{}-01", &parent[16..])));
            // What else was said of another trace does not belong to this one (section 3.3.1.5).
            dropped = &["tracestate"];
            trace = Some(own);
        }
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        let kept = head.with_fields(&fields, dropped, limits)?;
        let field = id.map(|(rule, id)| (format!("{}: {id}", rule.field), rule.field.len()));
        Ok((Arc::new(Mark { field, trace }), kept))
    }
}

impl Believed {
    fn believes(&self, client: Option<IpAddr>) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some(clients) => clients.contains(client),
        }
    }
}

/// Whether an id fits into logs and fields as it is.
fn is_id(text: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:+/=@~".contains(&byte);
    (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_fine)
}

/// The trace of a `traceparent` (W3C Trace Context, section 3.2); `None`: it is none.
fn trace_of(text: &str) -> Option<&str> {
    let is_hex = |part: &str, len: usize| {
        part.len() == len && part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let is_set = |part: &str| part.bytes().any(|byte| byte != b'0');
    let mut parts = text.split('-');
    let [version, trace, parent, flags] = [(); 4].map(|()| parts.next().unwrap_or_default());
    // Later versions may have more behind.
    let is_over = parts.next().is_none() || version != "00";
    let is_fine = is_hex(version, 2)
        && version != "ff"
        && is_hex(trace, 32)
        && is_set(trace)
        && is_hex(parent, 16)
        && is_set(parent)
        && is_hex(flags, 2)
        && is_over;
    is_fine.then_some(trace)
}

fn hex(number: u128) -> String {
    format!("{number:032x}")
}

/// Numbers that no other request of any server gets: unpredictable enough for a name, and no secret.
#[derive(Debug, Default)]
pub struct Ids(Option<(RandomState, u64)>);

impl Ids {
    /// The next one.
    pub fn draw(&mut self) -> u128 {
        let (keys, count) = self.0.get_or_insert_with(|| (RandomState::new(), seed()));
        *count = count.wrapping_add(1);
        u128::from(keys.hash_one(*count)) << 64 | u128::from(keys.hash_one((*count, true)))
    }
}

/// A number that the other loops do not begin with: their hash keys differ by little.
fn seed() -> u64 {
    let mut bytes = [0; 8];
    // Without random bytes, the keys alone make the difference.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK);
    u64::from_ne_bytes(bytes)
}

const TRACEPARENT: &str = "traceparent";

/// Longest id that is taken: those in use have 20 to 64.
const ID_BYTES_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_differ() {
        let (mut one, mut other) = (Ids::default(), Ids::default());
        let all: HashSet<_> = (0..1000).flat_map(|_| [one.draw(), other.draw()]).collect();
        assert_eq!(all.len(), 2000);
    }

    #[test]
    fn only_what_can_be_a_traceparent_is_one() {
        let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        assert_eq!(trace_of(&format!("00-{trace}-{parent}-01")), Some(trace));
        assert_eq!(trace_of(&format!("cc-{trace}-{parent}-09-more")), Some(trace), "a later version");
        let zeros = "0".repeat(32);
        for bad in [
            format!("00-{trace}-{parent}"),
            format!("00-{trace}-{parent}-01-more"),
            format!("ff-{trace}-{parent}-01"),
            format!("00-{zeros}-{parent}-01"),
            format!("00-{trace}-{}-01", &zeros[16..]),
            format!("00-{}-{parent}-01", trace.to_uppercase()),
            "x".into(),
            String::new(),
        ] {
            assert_eq!(trace_of(&bad), None, "{bad}");
        }
    }

    #[test]
    fn ids_that_break_out_of_a_line_are_not_taken() {
        assert!(is_id("9f86d081-884c.7d65_9a2f:eaa0/c55a+d015=@~"));
        for bad in ["", "a b", "a\"", "a\\", "a\n", "\u{e4}", &"x".repeat(129)] {
            assert!(!is_id(bad), "{bad:?}");
        }
    }
}
