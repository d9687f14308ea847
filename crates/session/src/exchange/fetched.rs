//! Files of further requests on a connection that a front-end has handed over to this node: in memory here, read here, or fetched
//! from their homes ([0123](../../../../docs/decisions/0123-fetching-by-cost.md)).
//!
//! ```text
//!   at hand? ──► sent
//!      └─► Homes ─┬─ this node is the home, or reads as fast ───────────────────────► read
//!                 └─ Turn at the home ─► its head ─► its body ─► end
//!                             │             └ fails ──► the rest is read here, if the file is the same
//!                             └ fails, or has something else to say ────────────────► read
//! ```
//!
//! A home never fetches for another node: connections between nodes are not handed over, and what comes with [`Fetching::MARK`] is read.

use std::sync::Arc;

use baton_content::{Found, Stored};
use baton_http::origin::{ResponseHead, upgrade_of};
use baton_http::{
    ContentRange, EntityTag, FieldRules, Method, RequestHead, Status, VariableText, is_same_field,
};
use baton_shares::{ClientKey, Permit};
use baton_site::plan::{Fetching, Plan};
use baton_telemetry::clock::Clock;
use baton_upstream::Turn;

use super::find::is_at_hand;
use super::routed::Routed;
use crate::context::Context;

/// Where a file comes from.
#[derive(Debug)]
pub(super) enum FileSupply {
    /// From here, and how long that takes tells nothing.
    Own,
    /// From this node's disk.
    Disk,
    /// From its home.
    Home(Box<Fetch>),
}

/// A file on its way from its home.
#[derive(Debug)]
pub(super) struct Fetch {
    fetching: Arc<Fetching>,
    turn: Option<Turn>,
    asked_us: u64,
    has_answered: bool,
    _place: Permit,
    /// What the answer is a part of, if that can be told.
    part: Option<FilePart>,
    /// Bytes of the body that have come.
    passed: u64,
}

/// Bytes of a file of which the home has sent some.
#[derive(Debug)]
struct FilePart {
    first: u64,
    len: u64,
    /// The strong tag, which copies of one file share.
    tag: Box<[u8]>,
}

/// Where the file of this request comes from; `client`: who asks.
pub(super) fn supply(
    ctx: &Context,
    plan: &Plan,
    routed: &Routed<'_>,
    head: &RequestHead<'_>,
    client: Option<ClientKey>,
) -> FileSupply {
    let (Some(fetching), Some(tree)) = (plan.fetching(), routed.files()) else { return FileSupply::Own };
    // No home is asked for another protocol: a file has none, and no home may open a tunnel.
    let is_read = matches!(head.method, Method::Get | Method::Head)
        && head.framing.is_empty()
        && upgrade_of(head).is_none();
    let is_of_door = plan.site(fetching.door, head.host) == Some(routed.index.site);
    if !is_read || !is_of_door || is_at_hand(ctx, tree, head) {
        return FileSupply::Own;
    }
    let may_be_fetched = !head.fields_of(Fetching::LOOPS).any(says_mark);
    let place = fetching.under_way.take(client, UNDER_WAY_MAX).ok().filter(|_| may_be_fetched);
    let Some(place) = place else { return FileSupply::Disk };
    let Some(turn) = fetching.homes.seek(head.path, client, ctx.clock.now_ms()) else {
        return FileSupply::Disk;
    };
    FileSupply::Home(Box::new(Fetch {
        fetching: Arc::clone(fetching),
        turn: Some(turn),
        asked_us: ctx.clock.exact_us(),
        has_answered: false,
        _place: place,
        part: None,
        passed: 0,
    }))
}

/// Whether another node fetches a file that is in memory here.
pub(super) fn is_hit(ctx: &Context, plan: &Plan, routed: &Routed<'_>, head: &RequestHead<'_>) -> bool {
    let (Some(_), Some(tree)) = (plan.fetching(), routed.files()) else { return false };
    head.fields_of(Fetching::LOOPS).any(says_mark) && is_at_hand(ctx, tree, head)
}

/// A file that was not in memory was read here; `since_us`: when it was looked for.
pub(super) fn note_read(ctx: &Context, plan: &Plan, since_us: u64) {
    if let Some(fetching) = plan.fetching() {
        fetching.homes.note_read(ctx.clock.exact_us().saturating_sub(since_us));
    }
}

impl Fetch {
    /// How homes are asked.
    pub(super) fn fetching(&self) -> &Fetching {
        &self.fetching
    }

    /// The turn at the home, once.
    pub(super) fn take_turn(&mut self) -> Option<Turn> {
        self.turn.take()
    }

    /// The head of the answer is there; it keeps what it says of the file. False: it says something else than the file would.
    /// `rules`: those of the route, by which this node adds fields.
    pub(super) fn take_head(
        &mut self,
        head: &mut ResponseHead,
        request: &RequestHead<'_>,
        rules: Option<&FieldRules>,
        clock: &Clock,
    ) -> bool {
        self.has_answered = true;
        if !answers(head.status(), request) {
            if is_refusal(head.status()) {
                self.fetching.homes.note_failed();
            }
            return false;
        }
        let (name, value) = Fetching::HIT;
        if head.field(name).is_some_and(|said| said == value.as_bytes()) {
            self.fetching.homes.note_fetched(clock.exact_us().saturating_sub(self.asked_us));
        }
        // Rules of the route are obeyed here. What the home has added by the same rules would be there twice.
        let is_added = |name: &[u8], value: &[u8]| {
            let is_same = |text: &VariableText| text.fixed().is_none_or(|fixed| fixed.as_bytes() == value);
            let mut added = rules.into_iter().flat_map(FieldRules::added);
            added.any(|(own, text)| is_same_field(own, name) && is_same(text))
        };
        head.retain(|name, value| {
            OF_FILES.iter().any(|known| is_same_field(known, name)) && !is_added(name, value)
        });
        self.part = FilePart::of(head);
        true
    }

    /// So much of the body has come.
    pub(super) fn note_passed(&mut self, bytes: u64) {
        self.passed += bytes;
    }

    /// The answer, or the rest of it, will not come.
    pub(super) fn note_failed(&self) {
        if !self.has_answered {
            self.fetching.homes.note_failed();
        }
    }

    /// Whether the rest of the answer could be read here.
    pub(super) fn can_go_on(&self) -> bool {
        self.part.as_ref().is_some_and(|part| self.passed < part.len)
    }

    /// What is missing of the answer, as a range of the file that was found here: its beginning and its length. `None`: this is
    /// another file.
    pub(super) fn rest_of(&self, found: &Found) -> Option<(Arc<Stored>, u64, u64)> {
        let (part, Found::File(stored)) = (self.part.as_ref()?, found) else { return None };
        let tag = EntityTag::of_field(&part.tag)?;
        let rest = part.len.checked_sub(self.passed)?;
        let is_same = tag.matches_strongly(stored.etag().as_tag()) && part.first + part.len <= stored.len();
        is_same.then(|| (Arc::clone(stored), part.first + self.passed, rest))
    }
}

impl FilePart {
    /// What this is the head of. `None`: of several parts, or it does not say.
    fn of(head: &ResponseHead) -> Option<Self> {
        let tag = head.field("ETag")?.into();
        let (first, len) = match (head.status(), head.field("Content-Range")) {
            (Status::OK, _) => (0, head.content_length()?),
            (Status::PARTIAL_CONTENT, Some(range)) => {
                let ContentRange { range, .. } = ContentRange::parse(range)?;
                (range.first, range.len())
            }
            _ => return None,
        };
        Some(Self { first, len, tag })
    }
}

/// Whether a file would answer the request with this status: a part is asked for, and so is whether it has changed.
fn answers(status: Status, request: &RequestHead<'_>) -> bool {
    match status {
        Status::OK => true,
        Status::PARTIAL_CONTENT => request.range.is_some(),
        Status::NOT_MODIFIED => !request.conditions.is_empty(),
        _ => false,
    }
}

/// Whether a home says with it that this node need not ask. A missing file, or a part beyond its end, is the client's business.
fn is_refusal(status: Status) -> bool {
    matches!(status.code(), 401 | 403 | 429 | 500..)
}

fn says_mark(value: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|member| member.trim_ascii() == Fetching::MARK.as_bytes())
}

/// What a response says of a file. Everything else is said here.
const OF_FILES: [&str; 12] = [
    "Accept-Ranges",
    "Cache-Control",
    "Content-Encoding",
    "Content-Language",
    "Content-Range",
    "Content-Type",
    "Date",
    "ETag",
    "Expires",
    "Last-Modified",
    "Server",
    "Vary",
];

/// Files on their way from homes at a time: three quarters of them for one client. What is beyond is read here.
const UNDER_WAY_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn part(status: Status, length: Option<u64>, fields: &[(&str, &str)]) -> Option<(u64, u64)> {
        let mut head = ResponseHead::of_status(status);
        fields.iter().for_each(|(name, value)| head.add(name, value.as_bytes()));
        head.set_content_length(length);
        FilePart::of(&head).map(|part| (part.first, part.len))
    }

    /// Goal: a response tells which bytes of which file it has, or it is not completed.
    #[test]
    fn what_can_be_completed() {
        let (ok, partial, tag) = (Status::OK, Status::PARTIAL_CONTENT, ("ETag", "\"a\""));
        assert_eq!(part(ok, Some(9), &[tag]), Some((0, 9)));
        assert_eq!(part(partial, Some(4), &[tag, ("Content-Range", "bytes 3-6/9")]), Some((3, 4)));
        assert_eq!(part(ok, Some(9), &[]), None, "any file");
        assert_eq!(part(ok, None, &[tag]), None, "of no known length");
        assert_eq!(part(partial, Some(90), &[tag, ("Content-Type", "multipart/byteranges")]), None);
        assert_eq!(part(Status::NOT_MODIFIED, None, &[tag]), None);
    }

    #[test]
    fn a_mark_is_a_member_of_the_list() {
        for (value, is_marked) in [
            ("baton-fetch", true),
            ("other , baton-fetch", true),
            ("baton-fetcher", false),
            ("x-baton-fetch,", false),
            ("", false),
        ] {
            assert_eq!(says_mark(value.as_bytes()), is_marked, "{value}");
        }
    }
}
