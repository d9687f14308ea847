//! Requests and responses for the tests of this folder, from the text of their fields.

use super::{CacheRequest, Fetched, NotStored, RouteRules, Stored, Times};
use baton_http::origin::ResponseHead;
use baton_http::{HeadLimits, RequestHead, Status};

/// When stored responses come: Sun, 06 Nov 1994 08:49:37 GMT.
pub(crate) const NOW_S: u64 = 784_111_777;

/// Calls `ask` with a request whose fields are separated by `; `.
pub(crate) fn with_request<T>(method: &str, fields: &str, ask: impl FnOnce(&RequestHead<'_>) -> T) -> T {
    let text = format!("{method} / HTTP/1.1\r\nHost: a\r\n{}\r\n", lines(fields, "\r\n"));
    ask(&RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap())
}

/// Calls `ask` with a request that the cache may answer.
pub(crate) fn with_asked<T>(fields: &str, ask: impl FnOnce(&CacheRequest<'_>) -> T) -> T {
    with_request("GET", fields, |head| ask(&CacheRequest::of(&RouteRules::default(), head).unwrap()))
}

/// The head of a response with 10 bytes.
pub(crate) fn response(status: u16, fields: &str) -> ResponseHead {
    let text = lines(fields, "\n").into_bytes();
    ResponseHead::of_lines(text, Status::new(status), b"", Some(10), |_| true)
}

/// What is stored of a response to a request with these fields. It comes `at_s` seconds after [`NOW_S`].
pub(crate) fn store(request: &str, status: u16, fields: &str, at_s: u64) -> Result<Stored, NotStored> {
    with_request("GET", request, |request| {
        Stored::of(&RouteRules::default(), fetched(request, response(status, fields), at_s))
    })
}

/// A response that comes `at_s` seconds after [`NOW_S`].
pub(crate) fn fetched<'a>(request: &'a RequestHead<'a>, head: ResponseHead, at_s: u64) -> Fetched<'a> {
    Fetched { request, head, times: Times { requested_s: NOW_S + at_s, received_s: NOW_S + at_s } }
}

fn lines(fields: &str, end: &str) -> String {
    fields.split("; ").filter(|line| !line.is_empty()).map(|line| format!("{line}{end}")).collect()
}
