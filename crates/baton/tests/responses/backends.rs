//! An application and an origin whose own fields meddle with everything that a rule is about.

use std::time::{SystemTime, UNIX_EPOCH};

use baton_http::Stamp;

use crate::applications::Parameters;
use crate::origin::{Origin, Peer};
use crate::site::OF_OTHERS;

/// A page that is worth compressing.
pub(crate) fn page() -> String {
    "<p>A page says the same again and again.</p>\n".repeat(100)
}

/// The fields, as lines that end in this. `date`, `trace`: values of fields.
pub(crate) fn fields(date: &str, trace: &str, end: &str) -> String {
    let own = [
        "X-Set",
        "X-Add",
        "X-Removed",
        "X-Kept",
        "X-Request-Id",
        "Server",
        "Access-Control-Allow-Origin",
        "Access-Control-Allow-Credentials",
        "Access-Control-Expose-Headers",
        "Strict-Transport-Security",
    ];
    let own = own.map(|name| format!("{name}: {OF_OTHERS}{end}")).concat();
    format!("Content-Type: text/html{end}Vary: X-Kind{end}Date: {date}{end}X-Seen-Trace: {trace}{end}{own}")
}

/// Answers as an application. The folder of named files is a parameter.
pub(crate) fn answer(parameters: &Parameters) -> String {
    let parameter = |name: &str| parameters.get(name).map(String::as_str).unwrap_or_default();
    let fields = fields(LONG_AGO, parameter("HTTP_TRACEPARENT"), "\r\n");
    let file = format!("{}/page.html", parameter("NAMED"));
    match parameter("PATH_INFO") {
        "/sendfile" => format!("X-Sendfile: {file}\r\n{fields}\r\n"),
        "/accel" => format!("X-Accel-Redirect: /internal/page.html\r\n{fields}\r\n"),
        "/zerocopy" => format!("X-ZeroCopy: 0/{}\r\n{fields}\r\n{file}", file.len()),
        _ => format!("{fields}\r\n{}", page()),
    }
}

/// A CGI program that answers so.
pub(crate) fn program() -> String {
    let fields = fields(LONG_AGO, "$HTTP_TRACEPARENT", "\n");
    format!("#!/bin/sh\ncat <<END\n{fields}\n{}END\n", page())
}

/// Starts an origin.
pub(crate) fn start_origin() -> Origin {
    Origin::start(serve)
}

/// What is stored is fresh, or stale from the beginning.
fn serve(peer: &mut Peer) {
    while let Some(seen) = peer.request() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let date = Stamp::at(now).date;
        let date = std::str::from_utf8(&date).expect("ASCII");
        let mut fields = fields(date, seen.field("traceparent").unwrap_or_default(), "\r\n");
        fields.push_str(match seen.path() {
            "/own/cached/fresh" => "Cache-Control: max-age=600\r\n",
            "/own/cached/validated" => "Cache-Control: max-age=0\r\nETag: \"1\"\r\n",
            "/own/cached/stale" => "Cache-Control: max-age=0, stale-while-revalidate=600\r\nETag: \"1\"\r\n",
            _ => "",
        });
        match seen.field("if-none-match") {
            Some(_) => peer.send(format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n")),
            None => peer.answer(&fields, page()),
        }
    }
}

const LONG_AGO: &str = "Thu, 01 Jan 2015 00:00:00 GMT";
