//! Answers from stored responses: heads for clients, and which bytes follow.

use std::fmt::Arguments;
use std::io::Write as _;
use std::ops::Range;

use baton_buf::Aggregate;
use baton_http::origin::ResponseHead;
use baton_http::{Method, Ranges, RequestHead, Status, push_decimal, select_ranges};
use baton_segment::rules::{self, CacheStatus, Hit, belongs_in_304, is_replaced_on_reuse};

use crate::CacheWord;
use crate::ask::AskKey;
use crate::object::Object;

/// What a look into the cache leads to.
#[derive(Debug)]
pub enum Look {
    /// The answer is here.
    Answer(CachedAnswer),
    /// The client wants nothing but what is here, and it is not: 504.
    NotCached(CacheWord),
    /// Ask with [`Ask::new`](crate::Ask::new): something has to be fetched, or waited for.
    Ask(AskKey),
}

/// An answer that is complete.
#[derive(Debug)]
pub struct CachedAnswer {
    /// Its head, with the fields of the origin and of the cache.
    pub head: ResponseHead,
    /// Its body.
    pub body: Aggregate,
    /// What the cache did.
    pub word: CacheWord,
}

/// The head of an answer, and the bytes of the content that follow.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) head: ResponseHead,
    /// Up to `u64::MAX` if the length is not known yet.
    pub(crate) bytes: Range<u64>,
}

impl Reply {
    /// The answer to a request from a stored response.
    pub(crate) fn of(
        object: &Object,
        hit: &Hit<'_>,
        request: &RequestHead<'_>,
        status: &CacheStatus<'_>,
    ) -> Self {
        let stored = object.stored.head();
        let length = object.content.length();
        let ranges = match (hit.answer, request.range, length) {
            (rules::Answer::NotModified, ..) => {
                let head = with_fields(stored, Status::NOT_MODIFIED, None, belongs_in_304);
                return Self { head: finished(head, hit, status), bytes: 0..0 };
            }
            // Several ranges get the whole, which RFC 9110 section 14.2 allows.
            (rules::Answer::Ranges, Some(field), Some(length)) => select_ranges(field, length, 1),
            _ => Ranges::Whole,
        };
        let (head, bytes) = match (ranges, length) {
            (Ranges::Parts(parts), Some(length)) if parts.len() == 1 => {
                let part = parts[0];
                let mut head = with_fields(stored, Status::PARTIAL_CONTENT, Some(part.len()), |_| true);
                add_range(&mut head, format_args!("bytes {}-{}/{length}", part.first, part.last));
                (head, part.first..part.last + 1)
            }
            (Ranges::Unsatisfiable, Some(length)) => {
                let mut head = with_fields(stored, Status::RANGE_NOT_SATISFIABLE, Some(0), belongs_in_304);
                add_range(&mut head, format_args!("bytes */{length}"));
                (head, 0..0)
            }
            _ => {
                let mut head = object.stored.head_on_reuse(ADDED_BYTES_USUAL);
                head.set_content_length(length.or(stored.content_length()));
                (head, 0..length.unwrap_or(u64::MAX))
            }
        };
        let is_bare = request.method == Method::Head || head.status().forbids_content();
        let bytes = if is_bare { 0..0 } else { bytes };
        Self { head: finished(head, hit, status), bytes }
    }
}

fn with_fields(
    stored: &ResponseHead,
    status: Status,
    length: Option<u64>,
    keeps: impl Fn(&[u8]) -> bool,
) -> ResponseHead {
    let text = stored.copy_with_room(ADDED_BYTES_USUAL).into_buffer();
    ResponseHead::of_lines(text, status, status.reason(), length, |name| {
        !is_replaced_on_reuse(name) && keeps(name)
    })
}

fn add_range(head: &mut ResponseHead, range: Arguments<'_>) {
    head.add_with("Content-Range", |out| out.write_fmt(range).expect("a vector takes all"));
}

fn finished(mut head: ResponseHead, hit: &Hit<'_>, status: &CacheStatus<'_>) -> ResponseHead {
    head.add_with("Age", |out| push_decimal(out, hit.age_s.into()));
    add_status(&mut head, status);
    head
}

/// Adds a Cache-Status field.
pub(crate) fn add_status(head: &mut ResponseHead, status: &CacheStatus<'_>) {
    head.add_with("Cache-Status", |out| status.push(out));
}

/// Bytes of Age, Cache-Status, Content-Range and Via.
const ADDED_BYTES_USUAL: usize = 192;
