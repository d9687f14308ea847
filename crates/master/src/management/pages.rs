//! The pages of the admin listener: `/metrics`, `/status`, `/healthz`.

use std::time::SystemTime;

use baton_http::{HeadLimits, Method, ReplyHead, RequestHead, Stamp, Status};

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// Prometheus text.
    Metrics,
    /// JSON, as `baton ctl status --json`.
    Status,
    /// Whether requests are served.
    Health,
    /// No page: this response.
    Error(Status),
}

/// Media type of the Prometheus text format.
pub(crate) const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page that a request head asks for, and whether to leave out its body.
pub(crate) fn page(head: &[u8]) -> (Page, bool) {
    let request = match RequestHead::parse(head, &HeadLimits::default()) {
        Ok(request) => request,
        Err(refusal) => return (Page::Error(refusal.status()), false),
    };
    let page = match (request.method, request.path) {
        (Method::Get | Method::Head, b"/metrics") => Page::Metrics,
        (Method::Get | Method::Head, b"/status") => Page::Status,
        (Method::Get | Method::Head, b"/healthz") => Page::Health,
        (Method::Get | Method::Head, _) => Page::Error(Status::NOT_FOUND),
        _ => Page::Error(Status::METHOD_NOT_ALLOWED),
    };
    (page, request.method == Method::Head)
}

/// A response after which the connection is closed.
pub(crate) fn response(status: Status, media_type: &str, body: &[u8], head_only: bool) -> Vec<u8> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut out = Vec::with_capacity(256 + body.len());
    let mut head = ReplyHead::begin(&mut out, status);
    head.date(&Stamp::at(now.as_secs()));
    head.field("Connection", "close");
    if status == Status::METHOD_NOT_ALLOWED {
        head.field("Allow", "GET, HEAD");
    }
    head.field("Cache-Control", "no-store");
    head.field("Content-Type", media_type);
    head.number("Content-Length", body.len() as u64);
    head.end();
    if !head_only {
        out.extend_from_slice(body);
    }
    out
}

/// A response whose body is its status in words.
pub(crate) fn plain(status: Status, head_only: bool) -> Vec<u8> {
    text(status, &format!("{}\n", status.reason()), head_only)
}

/// A response with a text.
pub(crate) fn text(status: Status, text: &str, head_only: bool) -> Vec<u8> {
    response(status, "text/plain; charset=utf-8", text.as_bytes(), head_only)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_by_path() {
        let ask = |line: &str| page(format!("{line}\r\nHost: localhost\r\n\r\n").as_bytes());
        assert_eq!(ask("GET /metrics HTTP/1.1"), (Page::Metrics, false));
        assert_eq!(ask("GET /metrics?x=1 HTTP/1.1"), (Page::Metrics, false));
        assert_eq!(ask("HEAD /status HTTP/1.1"), (Page::Status, true));
        assert_eq!(ask("GET /healthz HTTP/1.0"), (Page::Health, false));
        assert_eq!(ask("GET / HTTP/1.1"), (Page::Error(Status::NOT_FOUND), false));
        assert_eq!(ask("POST /metrics HTTP/1.1"), (Page::Error(Status::METHOD_NOT_ALLOWED), false));
        assert_eq!(ask("GET  /metrics HTTP/1.1").0, Page::Error(Status::BAD_REQUEST));
    }

    #[test]
    fn a_head_answer_promises_the_body_that_it_leaves_out() {
        let whole = response(Status::OK, "text/plain", b"hello", false);
        let head = response(Status::OK, "text/plain", b"hello", true);
        assert!(whole.starts_with(&head[..20]) && whole.ends_with(b"\r\n\r\nhello"));
        assert!(head.ends_with(b"\r\n\r\n"));
        assert!(String::from_utf8(head).unwrap().contains("\r\nContent-Length: 5\r\n"));
    }
}
