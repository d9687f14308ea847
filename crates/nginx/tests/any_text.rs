//! Goal: no text makes the converter panic, and every result is TOML. Method: texts of the words of real configurations
//! in any order, and any bytes.

use proptest::prelude::*;

#[path = "../../../fuzz/src/nginx.rs"]
pub mod invariants;

/// Words that mean something, and signs that end them.
const WORDS: &[&str] = &[
    "http",
    "server",
    "location",
    "listen",
    "server_name",
    "root",
    "alias",
    "index",
    "try_files",
    "return",
    "rewrite",
    "if",
    "error_page",
    "autoindex",
    "expires",
    "add_header",
    "proxy_pass",
    "proxy_set_header",
    "upstream",
    "b",
    "fastcgi_pass",
    "fastcgi_param",
    "ssl_certificate",
    "ssl_certificate_key",
    "client_max_body_size",
    "deny",
    "allow",
    "auth_basic",
    "limit_req",
    "internal",
    "include",
    "itself",
    "x/*",
    "{",
    "}",
    ";",
    ";",
    "=",
    "^~",
    "~",
    "@b",
    "/",
    "/a/",
    "/a/b.html",
    r"\.php$",
    r"\.(css|jpe?g)$",
    "all",
    "on",
    "off",
    "80",
    "[::]:443",
    "ssl",
    "unix:/s",
    "_",
    "*.a.example",
    ".b.example",
    "a.example",
    "http://b",
    "http://127.0.0.1:1/x/",
    "$uri",
    "$uri/",
    "=404",
    "/index.php?$args",
    "301",
    "404",
    "444",
    "https://$host$request_uri",
    "($host",
    "a.example)",
    "30d",
    "max",
    "-1",
    "10m",
    "X-A",
    "\"a;\\\"b\"",
    "'",
    "#",
    "\n",
    "${x}",
    "é",
    "Cache-Control",
    "public",
    "^/old/(.*)$",
    "/new/$1",
    "permanent",
    "=200",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn words(picked in prop::collection::vec(prop::sample::select(WORDS), 0..60)) {
        invariants::configuration(picked.join(" ").as_bytes());
    }

    /// Blocks that end, so that most of them are read.
    #[test]
    fn servers(picked in prop::collection::vec(prop::sample::select(WORDS), 0..40)) {
        let inner: Vec<_> = picked.into_iter().filter(|word| !["{", "}", "'", "#"].contains(word)).collect();
        let text = format!("server {{ listen 80; location /a/ {{ {}; }} }}", inner.join(" "));
        invariants::configuration(text.as_bytes());
        let text = format!("http {{ server {{ {}; }} upstream b {{ server {}; }} }}", inner.join(" "), inner.join(" "));
        invariants::configuration(text.as_bytes());
    }

    #[test]
    fn bytes(input in prop::collection::vec(any::<u8>(), 0..200)) {
        invariants::configuration(&input);
    }
}
