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

/// Directives that each server of nginx may have, and that are one for all sites of Baton.
const ONE_FOR_ALL: [&str; 5] =
    ["client_header_timeout", "error_log", "keepalive_requests", "keepalive_timeout", "send_timeout"];

impl Translator<'_> {
    pub(super) fn whole(&mut self, main: &[Directive], http: &[Directive]) -> Vec<Section> {
        let scope = Scope::of(main).within(http);
        let mut sections = Vec::new();
        for (header, keys) in [
            ("[server]", server(&scope)),
            ("[limits]", self.limits(main, &scope)),
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
        for directive in block.iter().filter(|directive| ONE_FOR_ALL.contains(&&*directive.name)) {
            let text = format!("\"{}\" is one for all sites: left out here", directive.name);
            self.note(directive, Weight::LeftOut, text);
        }
    }

    fn limits(&mut self, main: &[Directive], scope: &Scope<'_>) -> Keys {
        let mut keys = Keys::default();
        let events = main.iter().find(|directive| directive.name == "events");
        let connections = events.and_then(|events| Scope::of(&events.block).word("worker_connections"));
        if let Some(count) = connections.and_then(|count| count.parse().ok()) {
            keys.set("connections_max", u64::max(count, 1));
        }
        if let Some(count) = scope.word("keepalive_requests").and_then(|count| count.parse().ok()) {
            keys.set("requests_per_connection_max", u64::max(count, 1));
        }
        if let Some(size) = scope.find("client_max_body_size") {
            match bytes(size.argument(0)) {
                Some(0) => keys.set("body_bytes_max", UNLIMITED),
                Some(bytes) => keys.set("body_bytes_max", bytes),
                None => self.leave_out(size),
            }
        }
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

    fn log(&mut self, scope: &Scope<'_>) -> Keys {
        let mut keys = Keys::default();
        if let Some(log) = scope.find("access_log") {
            match (log.argument(0), log.argument(1)) {
                ("off", _) => {}
                (path, "" | "combined") if path.starts_with('/') => keys.set("access", path),
                (path, _) if path.starts_with('/') => {
                    self.note(log, Weight::LeftOut, "the format of this log is left out: it is \"combined\"");
                    keys.set("access", path);
                }
                _ => self.leave_out(log),
            }
        }
        if let Some(log) = scope.find("error_log") {
            match log.argument(0) {
                "stderr" => keys.set("error", "stderr"),
                path if path.starts_with('/') => keys.set("error", path),
                _ => self.leave_out(log),
            }
        }
        keys
    }
}

fn server(scope: &Scope<'_>) -> Keys {
    let mut keys = Keys::default();
    // That is the user of Baton's workers, too, where Debian's nginx runs.
    if let Some(user) = scope.find("user").filter(|user| user.argument(0) != "www-data") {
        keys.set("user", user.argument(0));
        if !user.argument(1).is_empty() {
            keys.set("group", user.argument(1));
        }
    }
    keys
}

/// Bytes that no body has: 1024 TiB.
pub(super) const UNLIMITED: u64 = 1 << 50;
