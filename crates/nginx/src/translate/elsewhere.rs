//! What answers elsewhere: origins and applications.

use super::scope::Scope;
use super::translator::Translator;
use super::whole::UNLIMITED;
use crate::note::Weight;
use crate::tree::Directive;
use crate::values::{bytes, is_constant, milliseconds};
use crate::written::{Keys, Value};

impl Translator<'_> {
    /// The keys of an origin; `None`: it cannot be named. `prefix`: the path of the location; `start`: what a `rewrite` has put
    /// in its place.
    pub(super) fn origin(
        &mut self,
        pass: &Directive,
        scope: &Scope<'_>,
        prefix: &str,
        start: Option<&str>,
    ) -> Option<Keys> {
        let url = pass.argument(0);
        let (scheme, rest) = url.split_once("://").filter(|_| is_constant(url))?;
        let (host, path) = match rest.strip_prefix("unix:") {
            Some(socket) => match socket.split_once(':') {
                Some((socket, path)) => (format!("unix:{socket}"), path),
                None => (rest.to_owned(), ""),
            },
            None => rest.find('/').map_or((rest.to_owned(), ""), |at| (rest[..at].to_owned(), &rest[at..])),
        };
        let path = start.unwrap_or(path);
        if !path.is_empty() && path.ends_with('/') != prefix.ends_with('/') {
            let text =
                "the paths that the origin is asked for differ where the location ends without a slash";
            self.note(pass, Weight::LeftOut, text);
        }
        let mut keys = Keys::default();
        let full = |host: &str| match host.starts_with("unix:") {
            true => host.to_owned(),
            false => format!("{scheme}://{host}{path}"),
        };
        let upstream = self.upstreams.iter().find(|upstream| upstream.argument(0) == host).copied();
        match upstream {
            Some(upstream) => self.origins(upstream, &full, &mut keys)?,
            None => keys.set("to", full(&host)),
        }
        if scheme == "https" {
            self.tls_of_origin(pass, scope, &mut keys);
        }
        self.request_fields(scope, &mut keys);
        for (name, key) in [
            ("proxy_connect_timeout", "connect_ms"),
            ("proxy_read_timeout", "head_ms"),
            ("proxy_read_timeout", "gap_ms"),
        ] {
            self.time(scope, name, key, &mut keys);
        }
        if scope.word("proxy_redirect") == Some("off") {
            keys.set("rewrite_locations", false);
        }
        keys.set("body_bytes_max", body_bytes_max(scope));
        Some(keys)
    }

    fn origins(
        &mut self,
        upstream: &Directive,
        full: &dyn Fn(&str) -> String,
        keys: &mut Keys,
    ) -> Option<()> {
        let mut servers = Vec::new();
        for directive in &upstream.block {
            match directive.name.as_str() {
                "server" => servers.extend(self.server_of_upstream(directive, full)),
                "least_conn" => keys.set("policy", "least-connections"),
                "ip_hash" | "hash" | "random" => {
                    let text = format!("\"{}\" has no counterpart: origins take turns", directive.name);
                    self.note(directive, Weight::LeftOut, text);
                }
                "keepalive" | "keepalive_timeout" | "keepalive_requests" | "zone" => {}
                _ => self.leave_out(directive),
            }
        }
        match servers.as_slice() {
            [] => return None,
            [Value::Text(only)] => keys.set("to", only.as_str()),
            _ => keys.set("to", servers),
        }
        Some(())
    }

    fn server_of_upstream(&mut self, server: &Directive, full: &dyn Fn(&str) -> String) -> Option<Value> {
        let to = full(server.argument(0));
        let mut keys = Keys::default();
        keys.set("to", to.as_str());
        for option in &server.arguments[1..] {
            match option.split_once('=') {
                Some(("weight", weight)) => match weight.parse::<u64>() {
                    Ok(weight) => keys.set("weight", weight.clamp(1, 100)),
                    Err(_) => self.leave_out(server),
                },
                Some(("max_fails" | "fail_timeout" | "max_conns", _)) => {}
                None if option == "backup" => keys.set("backup", true),
                None if option == "down" => return None,
                _ => self.leave_out(server),
            }
        }
        Some(if keys.0.len() == 1 { Value::from(to) } else { Value::Table(keys) })
    }

    fn tls_of_origin(&mut self, pass: &Directive, scope: &Scope<'_>, keys: &mut Keys) {
        let mut tls = Keys::default();
        if let Some(authorities) = scope.word("proxy_ssl_trusted_certificate") {
            tls.set("ca", self.path_of_configuration(authorities));
        }
        if let Some(name) = scope.word("proxy_ssl_name").filter(|name| is_constant(name)) {
            tls.set("name", name);
        }
        if !tls.is_empty() {
            keys.set("tls", tls);
        }
        if scope.word("proxy_ssl_verify") != Some("on") {
            let text = "Baton verifies the origin's certificate, which nginx does not: `tls = { verify = false }` is as before";
            self.note(pass, Weight::Remark, text);
        }
    }

    fn request_fields(&mut self, scope: &Scope<'_>, keys: &mut Keys) {
        let (mut set, mut removed) = (Keys::default(), Vec::new());
        let mut host = Value::from("origin");
        for field in scope.all(&["proxy_set_header"]) {
            let [name, value] = field.arguments.as_slice() else { continue };
            match (name.to_ascii_lowercase().as_str(), value.as_str()) {
                ("host", "$host" | "$http_host" | "$host:$server_port" | "$server_name") => {
                    host = "client".into();
                }
                ("host", "$proxy_host") => {}
                ("host", value) if is_constant(value) && !value.is_empty() => host = value.into(),
                // What the origin is told anyway.
                ("upgrade" | "connection" | "te", _) => {}
                (known, _) if known.starts_with("x-forwarded-") || known == "forwarded" => {}
                ("x-real-ip", _) => {
                    let text = "origins find the client in X-Forwarded-For, not in X-Real-IP: left out";
                    self.note(field, Weight::LeftOut, text);
                }
                (_, "") => removed.push(name.clone()),
                (_, value) if is_constant(value) => set.set(name, value),
                _ => self.leave_out(field),
            }
        }
        keys.set("host", host);
        let mut rules = Keys::default();
        if !set.is_empty() {
            rules.set("set", set);
        }
        if !removed.is_empty() {
            rules.set("remove", removed);
        }
        if !rules.is_empty() {
            keys.set("request_headers", rules);
        }
    }

    /// The keys of an application; `None`: it cannot be named.
    pub(super) fn application(&mut self, pass: &Directive, scope: &Scope<'_>) -> Option<Keys> {
        let named = pass.argument(0);
        let upstream = self.upstreams.iter().find(|upstream| upstream.argument(0) == named).copied();
        let address = match upstream {
            Some(upstream) => {
                let servers: Vec<_> =
                    upstream.block.iter().filter(|server| server.name == "server").collect();
                if servers.len() > 1 {
                    self.note(pass, Weight::LeftOut, "only the first server of this upstream is taken");
                }
                servers.first()?.argument(0)
            }
            None => named,
        };
        if !is_constant(address) {
            return None;
        }
        let mut keys = Keys::default();
        keys.set("to", address);
        let mut params = Keys::default();
        for param in scope.all(&["fastcgi_param", "scgi_param"]) {
            let [name, value, ..] = param.arguments.as_slice() else { continue };
            let is_field = name.starts_with("HTTP_") && !is_constant(value);
            let is_told = is_field || TOLD.contains(&name.as_str());
            match value.as_str() {
                value if is_constant(value) && !(is_told && name != "SCRIPT_FILENAME") => {
                    params.set(name, value);
                }
                _ if is_told => {}
                _ => self.leave_out(param),
            }
        }
        if !params.is_empty() {
            keys.set("params", params);
        }
        self.time(scope, "fastcgi_read_timeout", "timeout_ms", &mut keys);
        keys.set("body_bytes_max", body_bytes_max(scope));
        Some(keys)
    }

    /// Sets a key to the time that a directive says.
    pub(super) fn time(&mut self, scope: &Scope<'_>, name: &str, key: &str, keys: &mut Keys) {
        let Some(directive) = scope.find(name) else { return };
        match milliseconds(directive.argument(0), 1000) {
            Some(time) => keys.set(key, time.clamp(1, 86_400_000)),
            None => self.leave_out(directive),
        }
    }

    /// A file that nginx finds beside its configuration.
    pub(super) fn path_of_configuration(&self, path: &str) -> String {
        match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("{}/{path}", self.includes.folder().trim_end_matches('/')),
        }
    }
}

/// nginx has a bound of 1 MiB by default.
fn body_bytes_max(scope: &Scope<'_>) -> u64 {
    match scope.word("client_max_body_size").and_then(bytes) {
        Some(0) => UNLIMITED,
        Some(bytes) => bytes,
        None => 1 << 20,
    }
}

/// What applications are told in any case.
const TOLD: &[&str] = &[
    "CONTENT_LENGTH",
    "CONTENT_TYPE",
    "DOCUMENT_ROOT",
    "DOCUMENT_URI",
    "GATEWAY_INTERFACE",
    "HTTPS",
    "PATH_INFO",
    "PATH_TRANSLATED",
    "QUERY_STRING",
    "REDIRECT_STATUS",
    "REMOTE_ADDR",
    "REMOTE_PORT",
    "REMOTE_USER",
    "REQUEST_METHOD",
    "REQUEST_SCHEME",
    "REQUEST_URI",
    "SCRIPT_FILENAME",
    "SCRIPT_NAME",
    "SERVER_ADDR",
    "SERVER_NAME",
    "SERVER_PORT",
    "SERVER_PROTOCOL",
    "SERVER_SOFTWARE",
];
