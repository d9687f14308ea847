//! The page for humans at `/`: all in one response, which asks for nothing but `/status`, again and again.

use baton_http::Status;
use rustix::rand::{GetRandomFlags, getrandom};

use super::pages::response_with;

/// The page. Its own style and script have a nonce that no other response has; anything else is refused by the browser.
pub(crate) fn response(head_only: bool) -> Vec<u8> {
    let nonce = nonce();
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let page = PAGE.replace("{nonce}", &nonce);
    let fields = [
        ("Content-Security-Policy", &*policy),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
    ];
    response_with(Status::OK, "text/html; charset=utf-8", page.as_bytes(), head_only, &fields)
}

/// Random digits. If the kernel has none, a style and a script without a nonce: the browser runs neither.
fn nonce() -> String {
    let mut bytes = [0_u8; 16];
    match getrandom(&mut bytes, GetRandomFlags::NONBLOCK) {
        Ok(_) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Err(_) => String::new(),
    }
}

const PAGE: &str = include_str!("screen.html");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_response_has_a_nonce_of_its_own() {
        let text = || String::from_utf8(response(false)).unwrap();
        let nonce = |text: &str| {
            let start = text.find("script-src 'nonce-").expect("a policy") + 18;
            text[start..start + 32].to_owned()
        };
        let (one, other) = (text(), text());
        assert_ne!(nonce(&one), nonce(&other));
        assert_eq!(one.matches(&format!("nonce=\"{}\"", nonce(&one))).count(), 2, "a style and a script");
        assert!(!one.contains("{nonce}") && !one.contains("://"), "nothing from elsewhere");
    }
}
