//! What a response says that has nothing else to say, of an error or a redirection: as a page for people, as JSON for
//! programs, as a line of text for terminals.
//!
//! A visitor learns what happened and what helps, and nothing of the server's inside. The response is shorter than a
//! kilobyte, its head included.

use std::fmt::Write as _;

use baton_http::{Status, preferred_media_type};

/// A form of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Html,
    Json,
    /// `Json` by the name that RFC 9457 gives it.
    Problem,
    Text,
}

impl Form {
    /// The form that a client prefers by its Accept field.
    pub(crate) fn preferred(accept: Option<&[u8]>) -> Self {
        Self::ALL[preferred_media_type(accept, &Self::ALL.map(Self::accepted_as))]
    }

    /// Value of the `Content-Type` field.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Json | Self::Problem => self.accepted_as(),
            Self::Text => "text/plain; charset=utf-8",
        }
    }

    fn accepted_as(self) -> &'static str {
        match self {
            Self::Html => "text/html",
            Self::Json => "application/json",
            Self::Problem => "application/problem+json",
            Self::Text => "text/plain",
        }
    }

    /// A client that does not care gets the first.
    const ALL: [Self; 4] = [Self::Html, Self::Json, Self::Problem, Self::Text];
}

/// Writes a notice. `what` is a sentence, or one without its capital and its full stop.
pub(crate) fn write(form: Form, status: Status, what: &str) -> Vec<u8> {
    let (code, reason) = (status.code(), status.reason());
    let what = sentence(what);
    let text = match form {
        Form::Html => {
            let what = without_markup(&what);
            format!(
                "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
                 <meta name=\"viewport\" content=\"width=device-width\">\n\
                 <meta name=\"color-scheme\" content=\"light dark\">\n\
                 <title>{code} {reason}</title>\n<style>{STYLE}</style>\n</head>\n\
                 <body>\n<h1>{code} {reason}</h1>\n<p>{what}</p>\n</body>\n</html>\n"
            )
        }
        Form::Json | Form::Problem => {
            let (reason, what) = (json_string(reason), json_string(&what));
            format!("{{\"status\":{code},\"title\":{reason},\"detail\":{what}}}\n")
        }
        Form::Text => format!("{code} {reason}: {what}\n"),
    };
    text.into_bytes()
}

/// What helps a visitor.
pub(crate) fn explanation(status: Status) -> &'static str {
    match status {
        Status::BAD_REQUEST => "The request has a mistake. Check the address.",
        Status::UNAUTHORIZED => "You need a user name and a password to see this.",
        Status::FORBIDDEN => "You may not see this.",
        Status::NOT_FOUND => "There is nothing at this address. It may have moved, or have a typing error.",
        Status::METHOD_NOT_ALLOWED => "This can be read (GET, HEAD), but nothing else.",
        Status::REQUEST_TIMEOUT => "The request took too long to arrive. Try again.",
        Status::GONE => "What was here is gone, and will not come back.",
        Status::PRECONDITION_FAILED => "It is not what the request expected it to be.",
        Status::CONTENT_TOO_LARGE => "What you send is larger than this site takes.",
        Status::RANGE_NOT_SATISFIABLE => "It is shorter than that.",
        Status::TOO_MANY_REQUESTS => "You have asked too often. Wait a moment, then try again.",
        Status::UNAVAILABLE_FOR_LEGAL_REASONS => "The law does not let this site show it.",
        Status::NOT_IMPLEMENTED => "This site does not know the method of the request.",
        Status::BAD_GATEWAY => "A part of this site is out of order. Try again in a moment.",
        Status::SERVICE_UNAVAILABLE => "This site is very busy. Try again in a moment.",
        Status::GATEWAY_TIMEOUT => "A part of this site takes too long. Try again in a moment.",
        status if status.code() < 500 => "This site cannot answer the request as it is.",
        _ => "Something went wrong here, not with you. Try again later.",
    }
}

/// With a capital letter and a full stop.
fn sentence(what: &str) -> String {
    let mut characters = what.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    let mut sentence: String = first.into_iter().chain(characters).collect();
    if !sentence.ends_with(['.', '/']) {
        sentence.push('.');
    }
    sentence
}

fn without_markup(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A string of RFC 8259, section 7.
fn json_string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control < ' ' => {
                // Writing to a string cannot fail.
                let _ = write!(quoted, "\\u{:04x}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// Without it, as under a site's strict `Content-Security-Policy`, the page is plain, but complete.
const STYLE: &str = "body{background:Canvas;color:CanvasText;font:1.1rem/1.6 system-ui,sans-serif;max-width:32rem;margin:20vh auto;padding:0 1.5rem;\
overflow-wrap:anywhere}h1{font-size:2rem;line-height:1.2;border-left:.4rem solid #d9480f;padding-left:1rem}";

#[cfg(test)]
mod tests {
    use super::*;

    fn text(form: Form, status: Status, what: &str) -> String {
        String::from_utf8(write(form, status, what)).unwrap()
    }

    #[test]
    fn every_form_says_the_same() {
        let what = "the path has a \"quote\" & <markup>";
        let html = text(Form::Html, Status::BAD_REQUEST, what);
        assert!(
            html.contains("<h1>400 Bad Request</h1>\n<p>The path has a \"quote\" &amp; &lt;markup&gt;.</p>")
        );
        let detail = r#""The path has a \"quote\" & <markup>.""#;
        let json = text(Form::Json, Status::BAD_REQUEST, what);
        assert_eq!(json, format!("{{\"status\":400,\"title\":\"Bad Request\",\"detail\":{detail}}}\n"));
        assert_eq!(text(Form::Problem, Status::BAD_REQUEST, what), json);
        let plain = text(Form::Text, Status::BAD_REQUEST, what);
        assert_eq!(plain, "400 Bad Request: The path has a \"quote\" & <markup>.\n");
        assert_eq!(json_string("a\\\n"), "\"a\\\\\\u000a\"");
    }

    /// A head has up to 300 bytes.
    #[test]
    fn a_page_leaves_room_for_its_head_in_a_kilobyte() {
        for code in 300..600 {
            let status = Status::new(code);
            let page = write(Form::Html, status, explanation(status));
            assert!(page.len() <= 1024 - 300, "{status}: {} bytes", page.len());
        }
    }

    #[test]
    fn a_sentence_is_left_as_it_is() {
        for (what, said) in
            [("a mistake", "A mistake."), ("See https://a/", "See https://a/"), ("It is.", "It is.")]
        {
            assert_eq!(sentence(what), said);
        }
    }
}
