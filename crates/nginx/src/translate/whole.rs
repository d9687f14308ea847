//! What holds for the whole server: `[server]`, `[limits]`, `[timeouts]`, `[log]`.

use super::scope::Scope;
use super::translator::Translator;
use crate::note::Weight;
use crate::tree::Directive;
use crate::values::{bytes, milliseconds};
use crate::written::{Keys, Section};

/// Times of clients, and Baton's keys for them.
const TIMEOUTS: [(&str, &str); 4] = [
    ("keepalive_timeout", "idle_ms"),
    ("client_header_timeout", "head_ms"),
    ("client_body_timeout", "body_ms"),
    ("send_timeout", "send_ms"),
];

/// The buffer that the head of a response has to fit, for each kind of origin.
const RESPONSE_HEADS: [&str; 4] =
    ["fastcgi_buffer_size", "proxy_buffer_size", "scgi_buffer_size", "uwsgi_buffer_size"];

/// Directives that each server of nginx may have, and that are one for all sites of Baton.
const ONE_FOR_ALL: [&str; 6] = [
    "client_header_timeout",
    "error_log",
    "keepalive_requests",
    "keepalive_timeout",
    "send_timeout",
    "underscores_in_headers",
];

impl Translator<'_> {
    pub(super) fn whole(&mut self, main: &[Directive], http: &[Directive]) -> Vec<Section> {
        let scope = Scope::of(main).within(http);
        let mut sections = Vec::new();
        for (header, keys) in [
            ("[server]", self.user(&scope)),
            ("[limits]", self.limits(main, http, &scope)),
            ("[timeouts]", self.timeouts(&scope)),
            ("[log]", self.log(&scope)),
        ] {
            if !keys.is_empty() {
                sections.push(Section { header, notes: Vec::new(), keys });
            }
        }
        sections
    }

    /// Says which directives of a server or a location are one for all sites.
    pub(super) fn account_one_for_all(&mut self, block: &[Directive]) {
        for types in block.iter().filter(|directive| directive.name == "types" && !directive.block.is_empty())
        {
            self.leave_out(types);
        }
        for directive in block.iter().filter(|directive| ONE_FOR_ALL.contains(&&*directive.name)) {
            let text = format!("\"{}\" is one for all sites: left out here", directive.name);
            let weight = match directive.name.as_str() {
                "underscores_in_headers" => Weight::LeftOut,
                _ => Weight::Remark,
            };
            self.note(directive, weight, text);
        }
    }

    /// A user that does not exist here cannot be that of the workers.
    fn user(&mut self, scope: &Scope<'_>) -> Keys {
        let mut keys = Keys::default();
        // The user of Debian's nginx is the package's choice, and php-fpm's user, too: Baton has one of its own.
        let Some(user) = scope.find("user").filter(|user| user.argument(0) != "www-data") else {
            return keys;
        };
        let known = self.includes.read("/etc/passwd").unwrap_or_default();
        let is_here = |(_, text): &(String, String)| {
            text.lines()
                .any(|line| line.strip_prefix(user.argument(0)).is_some_and(|rest| rest.starts_with(':')))
        };
        if !known.is_empty() && !known.iter().any(is_here) {
            let text =
                "there is no such user here: workers have Baton's own, who must be able to read the files";
            self.note(user, Weight::Remark, text);
            return keys;
        }
        keys.set("user", user.argument(0));
        if !user.argument(1).is_empty() {
            keys.set("group", user.argument(1));
        }
        keys
    }

    fn limits(&mut self, main: &[Directive], http: &[Directive], scope: &Scope<'_>) -> Keys {
        let mut keys = Keys::default();
        let events = main.iter().find(|directive| directive.name == "events");
        let connections = events.and_then(|events| Scope::of(&events.block).word("worker_connections"));
        if let Some(count) = connections.and_then(|count| count.parse().ok()) {
            keys.set("connections_max", u64::max(count, 1));
        }
        if let Some(count) = scope.word("keepalive_requests").and_then(|count| count.parse().ok()) {
            keys.set("requests_per_connection_max", u64::max(count, 1));
        }
        if scope.word("underscores_in_headers") == Some("on") {
            keys.set("underscores_in_headers", true);
        }
        if let Some(size) = scope.find("client_max_body_size") {
            match bytes(size.argument(0)) {
                Some(0) => keys.set("body_bytes_max", UNLIMITED),
                Some(bytes) => keys.set("body_bytes_max", bytes),
                None => self.leave_out(size),
            }
        }
        head_limits(http, &mut keys);
        keys
    }

    fn timeouts(&mut self, scope: &Scope<'_>) -> Keys {
        let mut keys = Keys::default();
        for (name, key) in TIMEOUTS {
            let Some(directive) = scope.find(name) else { continue };
            match milliseconds(directive.argument(0), 1000) {
                // nginx then closes each connection; here an idle one is closed at once.
                Some(time) => keys.set(key, time.clamp(1, 86_400_000)),
                None => self.leave_out(directive),
            }
        }
        keys
    }
}

/// Longer heads than usual, which one location may need, are allowed everywhere.
fn head_limits(http: &[Directive], keys: &mut Keys) {
    let lines = longest(http, &["large_client_header_buffers"], |directive| bytes(directive.argument(1)));
    let request = longest(http, &["large_client_header_buffers"], |directive| {
        directive.argument(0).parse::<u64>().ok()?.checked_mul(bytes(directive.argument(1))?)
    });
    let response = longest(http, &RESPONSE_HEADS, |directive| bytes(directive.argument(0)));
    for (key, bytes, usual) in [
        ("head_bytes_max", request, 32 << 10),
        ("target_bytes_max", lines, 8 << 10),
        ("response_head_bytes_max", response, 64 << 10),
    ] {
        if bytes > usual {
            keys.set(key, bytes.min(1 << 20));
        }
    }
}

/// The most that a directive of one of these names says, in a block or the blocks within it; 0: nothing.
fn longest(block: &[Directive], names: &[&str], of: fn(&Directive) -> Option<u64>) -> u64 {
    let own =
        |directive: &Directive| of(directive).filter(|_| names.contains(&&*directive.name)).unwrap_or(0);
    block.iter().map(|directive| own(directive).max(longest(&directive.block, names, of))).max().unwrap_or(0)
}

/// Bytes that no body has: 1024 TiB.
pub(super) const UNLIMITED: u64 = 1 << 50;
