//! What holds for answers, and how it shows.

use crate::common::decode::decode;
use crate::declared::declare;
use crate::exchange::{Exchange, ORIGIN};
use crate::kinds::Kind;
use crate::site;

declare! {
    /// What holds for answers.
    Rule {
        RequestId = "request id",
        Trace = "trace",
        Cors = "CORS",
        Fields = "fields of site and route",
        Vary = "one `Vary`",
        Compression = "compression",
        Date = "one `Date`",
        Server = "`Server`",
        Hsts = "HSTS",
        CacheStatus = "`Cache-Status`",
    }
}

impl Rule {
    /// What it asks for, for the page.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::RequestId => "Where the site has `request_id`: one field with the id that the log has.",
            Self::Trace => {
                "The log has the trace of the client's `traceparent`, and applications and origins get it."
            }
            Self::Cors => {
                "A page of a listed origin may read it: origin, credentials, exposed fields, once each."
            }
            Self::Fields => "`headers` of the route, or else of the site: set, added, removed, by default.",
            Self::Vary => "All that the answer depends on, in one line; none, if it depends on nothing.",
            Self::Compression => "A text of 1 KiB or more is compressed where the route says so.",
            Self::Date => "One, whatever an application or an origin says.",
            Self::Server => "The server's own, unless `server_header` is off; an origin keeps its own.",
            Self::Hsts => "Where the site has `hsts`: one field with its value.",
            Self::CacheStatus => "On a cached route: one field that says what the cache did.",
        }
    }

    /// # Errors
    /// What was expected, and what came.
    pub(crate) fn check(self, exchange: &Exchange<'_>) -> Result<(), String> {
        match self {
            Self::RequestId => request_id(exchange).map(drop),
            Self::Trace => trace(exchange),
            Self::Cors => cors(exchange),
            Self::Fields => fields(exchange),
            Self::Vary => vary(exchange),
            Self::Compression => compression(exchange),
            Self::Date => date(exchange),
            Self::Server => server(exchange),
            Self::Hsts => hsts(exchange),
            Self::CacheStatus => cache_status(exchange),
        }
    }
}

/// One id, made by the server.
fn request_id<'e>(exchange: &'e Exchange<'_>) -> Result<&'e str, String> {
    let is_own = |id: &str| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    match exchange.values("x-request-id")[..] {
        [id] if is_own(id) => Ok(id),
        ref other => Err(format!("one X-Request-Id of the server, not {}", shown(other))),
    }
}

/// The log has the trace beside the id of the answer; an application or an origin has read it.
fn trace(exchange: &Exchange<'_>) -> Result<(), String> {
    let logged = exchange.logged().ok_or("a line of the log with the trace, not none")?;
    if let Ok(id) = request_id(exchange)
        && logged["request_id"] != id
    {
        return Err(format!("the id of the answer in the log, not {}", logged["request_id"]));
    }
    // What is stored was read in another trace.
    if exchange.kind.has_fields_of_others() && !exchange.kind.is_cached() {
        expect(exchange, "x-seen-trace", &[&exchange.traceparent()])?;
    }
    Ok(())
}

fn cors(exchange: &Exchange<'_>) -> Result<(), String> {
    expect(exchange, "access-control-allow-origin", &[ORIGIN])?;
    expect(exchange, "access-control-allow-credentials", &["true"])?;
    match exchange.kind {
        // Nothing of it is read.
        Kind::Preflight => Ok(()),
        _ => expect(exchange, "access-control-expose-headers", &["X-Total"]),
    }
}

/// The rules of the route, or else of the site, have each their effect.
fn fields(exchange: &Exchange<'_>) -> Result<(), String> {
    let scope = site::scope(&exchange.request.path);
    let beside_others = exchange.kind.has_fields_of_others();
    expect(exchange, "x-set", &[scope])?;
    let added = [site::OF_OTHERS, scope];
    expect(exchange, "x-add", if beside_others { &added } else { &added[1..] })?;
    expect(exchange, "x-removed", &[])?;
    expect(exchange, "x-default", &[scope])?;
    expect(exchange, "x-kept", &[if beside_others { site::OF_OTHERS } else { scope }])?;
    match exchange.kind {
        Kind::File | Kind::Part | Kind::Parts | Kind::NotModified => {
            let count = exchange.values("etag").len();
            if count == 1 { Ok(()) } else { Err(format!("one ETag of the file, not {count}")) }
        }
        _ => Ok(()),
    }
}

/// One line at most, with all names that it must have and none twice.
fn vary(exchange: &Exchange<'_>) -> Result<(), String> {
    let lines = exchange.values("vary");
    let names: Vec<_> =
        lines.iter().flat_map(|line| line.split(',')).map(|name| name.trim().to_ascii_lowercase()).collect();
    let count = |wanted: &str| names.iter().filter(|name| name.eq_ignore_ascii_case(wanted)).count();
    let wanted = varies_by(exchange.kind);
    let is_complete = wanted.iter().all(|wanted| count(wanted) == 1);
    let has_no_double = names.iter().all(|name| count(name) == 1);
    match lines.len() < 2 && is_complete && has_no_double {
        true => Ok(()),
        false => Err(format!("one Vary with {}, not {}", wanted.join(", "), shown(&lines))),
    }
}

/// What the answer depends on.
fn varies_by(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::File
        | Kind::Part
        | Kind::Parts
        | Kind::NotModified
        | Kind::OwnErrorPage
        | Kind::Fixed
        | Kind::Rewritten => &["Origin", "Accept-Encoding"],
        // HTML or JSON.
        Kind::Listing => &["Origin", "Accept", "Accept-Encoding"],
        // Notices are HTML, JSON or text.
        Kind::PreconditionFailed
        | Kind::RangeNotSatisfiable
        | Kind::ErrorPage
        | Kind::Redirect
        | Kind::Away
        | Kind::RefusedByGuard
        | Kind::RateLimited
        | Kind::Unauthorized
        | Kind::MethodNotAllowed
        | Kind::ContentTooLarge => &["Origin", "Accept"],
        Kind::Options => &["Origin"],
        Kind::Preflight => &["Origin", "Access-Control-Request-Headers"],
        Kind::Sendfile
        | Kind::AccelRedirect
        | Kind::Cgi
        | Kind::Scgi
        | Kind::Unix
        | Kind::Shm
        | Kind::Origin
        | Kind::Fresh
        | Kind::Validated
        | Kind::Stale => &["X-Kind", "Origin", "Accept-Encoding"],
        Kind::ZeroCopy | Kind::Passfd => &["X-Kind", "Origin"],
        Kind::RefusedInput | Kind::SlowBody | Kind::AcmeProof => &[],
    }
}

/// The body is coded, and what a client decodes is what another gets as it is.
fn compression(exchange: &Exchange<'_>) -> Result<(), String> {
    let plain = exchange.again("identity");
    if plain.fields.iter().any(|(name, _)| name == "content-encoding") || plain.body.len() < 1024 {
        return Err(format!(
            "1 KiB for a client without codings, not {} bytes: {:?}",
            plain.body.len(),
            plain.fields
        ));
    }
    let is_coded = |fields: &[(String, String)]| {
        fields.iter().any(|(name, value)| name == "content-encoding" && value == "gzip")
    };
    let body = match is_coded(&exchange.response.fields) {
        true => exchange.response.body.clone(),
        // A file goes out as it is while it is coded for another client.
        false => {
            let coded = exchange.patience.coding.until(|| {
                let response = exchange.again("gzip");
                is_coded(&response.fields).then_some(response.body)
            });
            coded.ok_or("Content-Encoding: gzip, not the body as it is")?
        }
    };
    match decode("gzip", &body) == plain.body {
        true => Ok(()),
        false => Err("the same body after decoding, not another".to_owned()),
    }
}

fn date(exchange: &Exchange<'_>) -> Result<(), String> {
    let dates = exchange.values("date");
    match dates[..] {
        [date] if baton_http::parse_date(date.as_bytes()).is_some() => Ok(()),
        _ => Err(format!("one Date, not {}", shown(&dates))),
    }
}

/// An origin's own; the server's, if it may say it.
fn server(exchange: &Exchange<'_>) -> Result<(), String> {
    match (exchange.kind.is_of_origin(), exchange.stage.names_server) {
        (true, _) => expect(exchange, "server", &[site::OF_OTHERS]),
        (false, true) => expect(exchange, "server", &["baton"]),
        (false, false) => expect(exchange, "server", &[]),
    }
}

/// As the site over TLS says it. In clear, there is none (RFC 6797, section 7.2).
fn hsts(exchange: &Exchange<'_>) -> Result<(), String> {
    let expected: &[&str] = match (exchange.asker.is_secure, exchange.kind.has_fields_of_others()) {
        (true, _) => &[site::HSTS],
        // That of an application or an origin is its own affair.
        (false, true) => &[site::OF_OTHERS],
        (false, false) => &[],
    };
    expect(exchange, "strict-transport-security", expected)
}

/// One line, which says what the cache did.
fn cache_status(exchange: &Exchange<'_>) -> Result<(), String> {
    let did = match exchange.kind {
        Kind::Validated => "baton; fwd=stale; fwd-status=304",
        _ => "baton; hit",
    };
    match exchange.values("cache-status")[..] {
        [status] if status.starts_with(did) => Ok(()),
        ref other => Err(format!("Cache-Status: {did}, not {}", shown(other))),
    }
}

/// The values of a field's lines, sorted: those of a name may come in any order here.
fn expect(exchange: &Exchange<'_>, name: &str, expected: &[&str]) -> Result<(), String> {
    let mut values = exchange.values(name);
    values.sort_unstable();
    match values == expected {
        true => Ok(()),
        false => Err(format!("{name}: {}, not {}", shown(expected), shown(&values))),
    }
}

/// Lines of a field.
fn shown(values: &[&str]) -> String {
    match values {
        [] => "none".to_owned(),
        values => values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(" and "),
    }
}
