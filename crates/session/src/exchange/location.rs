//! Values of `Location` that the configuration does not say.

use baton_http::RequestHead;

use baton_site::template::{absolute, text, with_mark};

/// Where a directory without its slash is found.
pub(super) fn with_slash(head: &RequestHead<'_>) -> String {
    format!("{}/{}", absolute(&text(head.path)), with_mark(head.query))
}

/// What the client has asked for at another server.
pub(super) fn at(server: &str, head: &RequestHead<'_>) -> String {
    let (path, query) = head.asked();
    format!("{server}{}{}", absolute(&text(path)), with_mark(query))
}

/// The request's target over TLS. `None` if the client names no host, and there is none to stand for it.
pub(super) fn https(host: Option<&str>, port: u16, head: &RequestHead<'_>) -> Option<String> {
    let host = head.host.or(host)?;
    let port = if port == 443 { String::new() } else { format!(":{port}") };
    Some(format!("https://{host}{port}{}{}", absolute(&text(head.path)), with_mark(head.query)))
}

#[cfg(test)]
mod tests {
    use baton_http::HeadLimits;

    use super::*;

    #[test]
    fn https_keeps_the_host_and_the_target() {
        let https = |line: &str, host: Option<&str>, port| {
            let text = format!("{line}\r\n\r\n");
            https(host, port, &RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap())
        };
        let located = |line: &str| https(line, Some("own.example"), 443).unwrap();
        assert_eq!(located("GET /a//b?c HTTP/1.1\r\nHost: h.example:8080"), "https://h.example/a//b?c");
        assert_eq!(located("GET //x.example/ HTTP/1.1\r\nHost: [::1]"), "https://[::1]/x.example/");
        assert_eq!(located("GET http://abs.example/p HTTP/1.1\r\nHost: h"), "https://abs.example/p");
        assert_eq!(located("GET / HTTP/1.0"), "https://own.example/");
        assert_eq!(https("GET / HTTP/1.0", None, 443), None);
        assert_eq!(https("GET /x HTTP/1.1\r\nHost: h", None, 8443).unwrap(), "https://h:8443/x");
    }
}
