//! A stored response, as the rules see it: its head, and what was decided when it came. Its content is elsewhere.

use super::storable::{Fetched, judge, judge_freshness, judge_request};
use super::{Freshness, NotStored, ResponseDirectives, RouteRules, Times, Validators, VariantKey, targeted};
use baton_http::origin::ResponseHead;
use baton_http::{ContentRange, Stamp, Status, is_same_field};

/// A stored response. A part (206) is stored as the beginning of the whole: with status 200, and the length of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub(super) head: ResponseHead,
    pub(super) times: Times,
    pub(super) freshness: Freshness,
    pub(super) variant: VariantKey,
    /// The head has an Age, which is another one for each client.
    came_with_age: bool,
}

impl Stored {
    /// Decides whether a response is stored, and what is kept of its head.
    ///
    /// # Errors
    /// Why it is not. Its body goes to the client all the same.
    pub fn of(rules: &RouteRules, fetched: Fetched<'_>) -> Result<Self, NotStored> {
        judge_request(fetched.request)?;
        Self::updated(rules, fetched)
    }

    /// Decides whether a head that updates a stored one is kept, and what of it: any method may have brought it.
    pub(super) fn updated(rules: &RouteRules, fetched: Fetched<'_>) -> Result<Self, NotStored> {
        let control = Control::of(rules, &fetched.head);
        judge(rules, &fetched, &control.directives)?;
        let variant = VariantKey::of(fetched.request, &fetched.head)?;
        let freshness = control.freshness(rules, &fetched.head, fetched.times);
        judge_freshness(&fetched, &control.directives, &freshness)?;
        let head = dated(keep(fetched.head, &control.directives), fetched.times);
        Ok(Self::of_parts(head, fetched.times, freshness, variant))
    }

    /// The response that was kept: `head` and `variant` are of one that [`of`](Self::of) has let in. With other rules
    /// than then its freshness may be another.
    pub fn restore(rules: &RouteRules, head: ResponseHead, times: Times, variant: VariantKey) -> Self {
        // The age that it came with is in its head.
        let freshness = Control::of(rules, &head).freshness(rules, &head, times);
        Self::of_parts(head, times, freshness, variant)
    }

    fn of_parts(head: ResponseHead, times: Times, freshness: Freshness, variant: VariantKey) -> Self {
        let came_with_age = head.fields().any(|(name, _)| is_replaced_on_reuse(name));
        Self { head, times, freshness, variant, came_with_age }
    }

    /// The head. It has no Age but the one that came with it: see [`is_replaced_on_reuse`].
    pub const fn head(&self) -> &ResponseHead {
        &self.head
    }

    /// The head for a client, without what is written anew for each, and with room for so many bytes of that.
    pub fn head_on_reuse(&self, room_bytes: usize) -> ResponseHead {
        let mut head = self.head.copy_with_room(room_bytes);
        // Few origins are caches: it costs a look at each line.
        if self.came_with_age {
            head.retain(|name, _| !is_replaced_on_reuse(name));
        }
        head
    }

    /// When it was asked for, and when it came.
    pub const fn times(&self) -> Times {
        self.times
    }

    /// How long it may be used.
    pub const fn freshness(&self) -> &Freshness {
        &self.freshness
    }

    /// Which requests it answers.
    pub const fn variant(&self) -> &VariantKey {
        &self.variant
    }

    /// What tells it from other versions.
    pub fn validators(&self) -> Validators<'_> {
        Validators::of(&self.head)
    }
}

/// Whether the cache writes a field of a stored head anew for each client: Age (RFC 9111 section 5.1).
pub fn is_replaced_on_reuse(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"Age")
}

/// The directives that count for this cache, and whether they are from a targeted field.
pub(super) struct Control {
    pub(super) directives: ResponseDirectives,
    is_targeted: bool,
}

impl Control {
    pub(super) fn of(rules: &RouteRules, head: &ResponseHead) -> Self {
        if let Some(directives) = targeted(head, &rules.targeted_fields) {
            return Self { directives, is_targeted: true };
        }
        let is_control = |field: &(&[u8], &[u8])| field.0.eq_ignore_ascii_case(b"Cache-Control");
        let values = head.fields().filter(is_control).map(|(_, value)| value);
        Self { directives: ResponseDirectives::parse(values), is_targeted: false }
    }

    pub(super) fn freshness(&self, rules: &RouteRules, head: &ResponseHead, times: Times) -> Freshness {
        Freshness::of(rules, head, &self.directives, self.is_targeted, times)
    }
}

/// The head with a Date. Who stores a response without one adds the time at which it came (RFC 9110 section 6.6.1).
pub(super) fn dated(mut head: ResponseHead, times: Times) -> ResponseHead {
    if head.field("Date").is_none() {
        head.add("Date", &Stamp::at(times.received_s).date);
    }
    head
}

/// The head that is kept: without the fields that must not be, and as that of the whole.
fn keep(mut head: ResponseHead, directives: &ResponseDirectives) -> ResponseHead {
    if !directives.withheld.is_empty() {
        head.retain(|name, _| !directives.withheld.iter().any(|other| is_same_field(name, other)));
    }
    if head.status() != Status::PARTIAL_CONTENT {
        return head;
    }
    let length = head.field("Content-Range").and_then(ContentRange::parse).and_then(|part| part.length);
    let reason = Status::OK.reason().as_bytes();
    let is_of_the_whole = |name: &[u8]| !name.eq_ignore_ascii_case(b"Content-Range");
    ResponseHead::of_lines(head.into_buffer(), Status::OK, reason, length, is_of_the_whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_http::{HeadLimits, RequestHead};

    fn store(status: u16, fields: &str) -> Stored {
        let text = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let request = RequestHead::parse(text, &HeadLimits::default()).unwrap();
        let text = fields.as_bytes().to_vec();
        let head = ResponseHead::of_lines(text, Status::new(status), b"", Some(5), |_| true);
        let times = Times { requested_s: 100, received_s: 100 };
        Stored::of(&RouteRules::default(), Fetched { request: &request, head, times }).unwrap()
    }

    fn names(stored: &Stored) -> Vec<&str> {
        stored.head().fields().map(|(name, _)| std::str::from_utf8(name).unwrap()).collect()
    }

    #[test]
    fn rfc9111_5_2_2_4_named_fields_are_not_kept() {
        let stored =
            store(200, "Cache-Control: max-age=9, no-cache=\"b\", private=C\nA: 1\nB: 2\nc: 3\nD: 4\n");
        assert_eq!(names(&stored), ["Cache-Control", "A", "D", "Date"]);
    }

    #[test]
    fn a_part_is_kept_as_the_whole() {
        let fields = "Cache-Control: max-age=9\nETag: \"a\"\nContent-Range: bytes 5-9/30\n";
        let stored = store(206, fields);
        assert_eq!((stored.head().status(), stored.head().content_length()), (Status::OK, Some(30)));
        assert_eq!(names(&stored), ["Cache-Control", "ETag", "Date"]);
        let unknown = store(206, &fields.replace("/30", "/*"));
        assert_eq!(unknown.head().content_length(), None);
    }

    #[test]
    fn what_was_kept_is_restored() {
        let stored = store(200, "Cache-Control: max-age=9\nAge: 3\nVary: a\n");
        assert_eq!(stored.freshness().age_s(101), 4);
        let variant = VariantKey::from_bytes(stored.variant().as_bytes()).unwrap();
        let restored =
            Stored::restore(&RouteRules::default(), stored.head().clone(), stored.times(), variant);
        assert_eq!(restored, stored);
    }
}
