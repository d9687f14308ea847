//! The pages of the admin listener: `/`, `/metrics`, `/status`, `/healthz`, and a POST to `/purge`.

use std::time::SystemTime;

use baton_http::{BodyFraming, HeadLimits, HeadScanner, Method, ReplyHead, RequestHead, Stamp, Status};

use super::{Arrival, open_metrics};
use crate::control::PurgeRequest;

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// The figures, in this format.
    Metrics(MetricsFormat),
    /// The page for humans.
    Screen,
    /// JSON, as `baton ctl status --json`.
    Status,
    /// Whether requests are served.
    Health,
    /// Not a page: a purge of the shared cache.
    Purge(PurgeRequest),
    /// No page: this response, and its text.
    Error(Status, &'static str),
    /// Other methods than these.
    NotAllowed(&'static str),
    /// A purge that is none, and why.
    BadPurge(String),
}

/// How figures are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricsFormat {
    /// Prometheus text.
    Prometheus,
    /// OpenMetrics.
    OpenMetrics,
}

/// Media type of the Prometheus text format.
pub(crate) const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a request asks for, and whether to leave out the body of the response.
pub(crate) fn page(request: &[u8], arrival: Arrival<'_>) -> (Page, bool) {
    let error = |status: Status| (Page::Error(status, status.reason()), false);
    let Some(end) = HeadScanner::new().find_end(request) else { return error(Status::BAD_REQUEST) };
    let (head, body) = request.split_at(end);
    let request = match RequestHead::parse(head, &HeadLimits::default()) {
        Ok(request) => request,
        Err(refusal) => return error(refusal.status()),
    };
    if let Some((status, why)) = arrival.refusal(&request) {
        return (Page::Error(status, why), request.method == Method::Head);
    }
    let is_read = matches!(request.method, Method::Get | Method::Head);
    let page = match request.path {
        PURGE if request.method == Method::Post => purge(&request, body),
        PURGE => Page::NotAllowed("POST"),
        b"/" if is_read => Page::Screen,
        b"/metrics" if is_read => Page::Metrics(match open_metrics::is_accepted(request.field("Accept")) {
            true => MetricsFormat::OpenMetrics,
            false => MetricsFormat::Prometheus,
        }),
        b"/status" if is_read => Page::Status,
        b"/healthz" if is_read => Page::Health,
        _ if is_read => Page::Error(Status::NOT_FOUND, Status::NOT_FOUND.reason()),
        _ => Page::NotAllowed("GET, HEAD"),
    };
    (page, request.method == Method::Head)
}

/// A purge, unless a browser sends it: a page of another site could have it do so. Forms have other media types, and
/// scripts have an `Origin`, even that of a host name that has come to lead here.
fn purge(request: &RequestHead<'_>, body: &[u8]) -> Page {
    if ["Origin", "Sec-Fetch-Site"].into_iter().any(|name| request.field(name).is_some()) {
        return Page::Error(Status::FORBIDDEN, "no purges by browsers");
    }
    let media_type = request.field("Content-Type").unwrap_or_default();
    let media_type = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if !media_type.eq_ignore_ascii_case(b"application/json") {
        return Page::Error(Status::UNSUPPORTED_MEDIA_TYPE, "send Content-Type: application/json");
    }
    let BodyFraming::Length(length) = request.framing else {
        return Page::Error(Status::LENGTH_REQUIRED, "send the body with its Content-Length");
    };
    let length = usize::try_from(length).unwrap_or(usize::MAX).min(body.len());
    match serde_json::from_slice(&body[..length]) {
        Ok(purge) => Page::Purge(purge),
        Err(error) => Page::BadPurge(error.to_string()),
    }
}

/// Whether a request has come as a whole, or as much of it as is needed to refuse it.
pub(super) fn is_complete(request: &[u8]) -> bool {
    let Some(end) = HeadScanner::new().find_end(request) else { return false };
    let (head, body) = request.split_at(end);
    match RequestHead::parse(head, &HeadLimits::default()).map(|head| head.framing) {
        Ok(BodyFraming::Length(length)) => body.len() as u64 >= length,
        _ => true,
    }
}

const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

const PURGE: &[u8] = b"/purge";

/// A response after which the connection is closed.
pub(crate) fn response(status: Status, media_type: &str, body: &[u8], head_only: bool) -> Vec<u8> {
    response_with(status, media_type, body, head_only, &[])
}

/// 405, with the methods that are allowed.
pub(crate) fn not_allowed(methods: &str, head_only: bool) -> Vec<u8> {
    let status = Status::METHOD_NOT_ALLOWED;
    let body = format!("{}\n", status.reason());
    response_with(status, PLAIN_TEXT, body.as_bytes(), head_only, &[("Allow", methods)])
}

/// A response with more fields, after which the connection is closed.
pub(crate) fn response_with(
    status: Status,
    media_type: &str,
    body: &[u8],
    head_only: bool,
    fields: &[(&str, &str)],
) -> Vec<u8> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut out = Vec::with_capacity(256 + body.len());
    let mut head = ReplyHead::begin(&mut out, status);
    head.date(&Stamp::at(now.as_secs()));
    head.field("Connection", "close");
    for (name, value) in fields {
        head.field(name, value);
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
    response(status, PLAIN_TEXT, text.as_bytes(), head_only)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANYWHERE: Arrival<'_> = Arrival { local: None, hosts: &[] };

    #[test]
    fn pages_are_found_by_path() {
        let ask = |line: &str| page(format!("{line}\r\nHost: localhost\r\n\r\n").as_bytes(), ANYWHERE);
        let error = |status: Status| (Page::Error(status, status.reason()), false);
        let text = Page::Metrics(MetricsFormat::Prometheus);
        assert_eq!(ask("GET /metrics HTTP/1.1"), (text.clone(), false));
        assert_eq!(ask("GET /metrics?x=1 HTTP/1.1"), (text, false));
        let accept = "\r\nAccept: application/openmetrics-text;version=1.0.0";
        let open = Page::Metrics(MetricsFormat::OpenMetrics);
        assert_eq!(ask(&format!("GET /metrics HTTP/1.1{accept}")), (open, false));
        assert_eq!(ask("HEAD /status HTTP/1.1"), (Page::Status, true));
        assert_eq!(ask("GET /healthz HTTP/1.0"), (Page::Health, false));
        assert_eq!(ask("GET / HTTP/1.1"), (Page::Screen, false));
        assert_eq!(ask("GET /other HTTP/1.1"), error(Status::NOT_FOUND));
        assert_eq!(ask("POST /metrics HTTP/1.1"), (Page::NotAllowed("GET, HEAD"), false));
        assert_eq!(ask("GET /purge HTTP/1.1"), (Page::NotAllowed("POST"), false));
        assert_eq!(ask("GET  /metrics HTTP/1.1"), error(Status::BAD_REQUEST));
    }

    /// The word of the response to a POST with these fields and this body.
    fn post(path: &str, fields: &str, body: &str) -> Result<PurgeRequest, u16> {
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        match page(format!("{head}{body}").as_bytes(), ANYWHERE).0 {
            Page::Purge(request) => Ok(request),
            Page::BadPurge(_) => Err(400),
            Page::Error(status, _) => Err(status.code()),
            Page::NotAllowed(_) => Err(405),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_purge_is_a_post_of_json_that_no_browser_sends() {
        let (json, all) = ("Content-Type: application/json\r\n", "{\"all\":true}");
        let fields = format!("{json}Content-Length: 12\r\n");
        let request = PurgeRequest { all: true, ..PurgeRequest::default() };
        assert_eq!(post("/purge", &fields, all), Ok(request.clone()));
        let with_parameter = fields.replace("json", "JSON; charset=utf-8");
        assert_eq!(post("/purge", &with_parameter, all), Ok(request));
        for (path, fields, body, status) in [
            ("/%70urge", fields.clone(), all, 405),
            ("/purge/", fields.clone(), all, 405),
            ("/purge", fields.replace("application/json", "text/plain"), all, 415),
            ("/purge", "Content-Length: 12\r\n".into(), all, 415),
            ("/purge", format!("{fields}Origin: http://a\r\n"), all, 403),
            ("/purge", format!("{fields}Origin: null\r\n"), all, 403),
            ("/purge", format!("{fields}Sec-Fetch-Site: same-origin\r\n"), all, 403),
            ("/purge", fields.clone(), "{\"al\":true}", 400),
            ("/purge", fields.clone(), "[1,2,3,4,5]", 400),
            ("/purge", fields.replace("12", "11"), all, 400),
            ("/purge", json.into(), "", 411),
            ("/purge", format!("{json}Transfer-Encoding: chunked\r\n"), "c\r\n{\"all\":true}", 411),
        ] {
            assert_eq!(post(path, &fields, body), Err(status), "{path} {fields} {body}");
        }
    }

    #[test]
    fn a_body_is_awaited() {
        let head = "POST /purge HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
        for (request, expected) in [
            ("GET / HTTP/1.1\r\nHost: a\r\n".into(), false),
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n".into(), true),
            (head.into(), false),
            (format!("{head}12"), false),
            (format!("{head}123"), true),
            (format!("{}1", head.replace("Content-Length: 3", "Content-Length: x")), true),
        ] {
            assert_eq!(is_complete(request.as_bytes()), expected, "{request}");
        }
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
