//! What answers elsewhere: origins and applications.

use super::location::{Matcher, Spot};
use super::scope::Scope;
use super::translator::Translator;
use super::whole::UNLIMITED;
use crate::note::Weight;
use crate::tree::Directive;
use crate::values::{bytes, field_value, is_constant, milliseconds};
use crate::written::{Keys, Value};

impl Translator<'_> {
    /// The keys of an origin; `None`: it cannot be named. `prefix`: the path of the location; `start`: what a `rewrite` has put
    /// in its place.
    pub(super) fn origin(
        &mut self,
        pass: &Directive,
        spot: &Spot<'_>,
        prefix: &str,
        start: Option<&str>,
    ) -> Option<Keys> {
        let scope = &spot.scope;
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
        let is_named = matches!(spot.matcher, Matcher::Named(_));
        // Without a path, an origin is asked for the same as the server.
        let path = match spot.matcher {
            Matcher::Named(_) => "/",
            Matcher::Prefix { .. } if path == prefix => "",
            Matcher::Exact(_) | Matcher::Pattern { .. } | Matcher::Prefix { .. } => path,
        };
        if !is_named && !path.is_empty() && path.ends_with('/') != prefix.ends_with('/') {
            let text =
                "the paths that the origin is asked for differ where the location ends without a slash";
            self.note(pass, Weight::LeftOut, text);
        }
        let mut keys = Keys::default();
        let full = |host: &str| match host.starts_with("unix:") {
            true if path.is_empty() => host.to_owned(),
            true => format!("{host}:{path}"),
            false => format!("{scheme}://{host}{path}"),
        };
        let upstream = self.of_http.upstreams.iter().find(|upstream| upstream.argument(0) == host).copied();
        match upstream {
            Some(upstream) => self.origins(upstream, &full, &mut keys)?,
            None => keys.set("to", full(&host)),
        }
        keys.set("host", if upstream.is_some() { &*host } else { "origin" });
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
        let redirects = scope.find("proxy_redirect");
        if is_named || redirects.is_some_and(|redirects| redirects.argument(0) == "off") {
            keys.set("rewrite_locations", false);
        }
        if let Some(redirects) = redirects.filter(|said| !matches!(said.argument(0), "off" | "default")) {
            self.leave_out(redirects);
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
                "random" => keys.set("policy", "power-of-two"),
                "hash" if matches!(directive.argument(0), "$request_uri" | "$uri") => {
                    keys.set("policy", "consistent-hash");
                }
                "ip_hash" | "hash" => {
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
                Some(("max_fails" | "fail_timeout", _)) => {
                    let text =
                        "when an origin is left alone for a time is said by `eject`: this is not taken over";
                    self.note(server, Weight::Remark, text);
                }
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
        for (directive, key) in
            [("proxy_ssl_certificate", "certificate"), ("proxy_ssl_certificate_key", "key")]
        {
            if let Some(file) = scope.word(directive).filter(|file| is_constant(file) && !file.is_empty()) {
                tls.set(key, self.path_of_configuration(file));
            }
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
        for field in scope.all(&["proxy_set_header"]) {
            let [name, value] = field.arguments.as_slice() else { continue };
            match (name.to_ascii_lowercase().as_str(), value.as_str()) {
                ("host", "$host" | "$http_host" | "$host:$server_port" | "$server_name") => {
                    keys.set("host", "client");
                }
                ("host", "$proxy_host") => {}
                ("host", value) if is_constant(value) && !value.is_empty() => keys.set("host", value),
                // What the origin is told anyway.
                ("upgrade" | "connection" | "te", _) => {}
                ("content-length" | "transfer-encoding" | "expect" | "keep-alive", "") => {}
                ("content-length" | "transfer-encoding" | "expect" | "keep-alive", _) => {
                    self.leave_out(field);
                }
                (
                    "x-forwarded-for",
                    "$proxy_add_x_forwarded_for" | "$remote_addr" | "$http_x_forwarded_for, $remote_addr",
                )
                | ("x-forwarded-proto", "$scheme")
                | ("x-forwarded-host", "$host" | "$http_host" | "$server_name" | "$host:$server_port") => {}
                (_, "") => removed.push(name.clone()),
                (_, value) if is_constant(value) => set.set(name, value),
                (known, _) if known.starts_with("x-forwarded-") || known == "forwarded" => {
                    self.leave_out(field);
                }
                // The client's own field by this name would be passed on.
                (known, value)
                    if value.strip_prefix("$http_").is_some_and(|own| own == known.replace('-', "_")) => {}
                (_, value)
                    if let Some(value) = field_value(value).filter(|value| !tells_of_answer(value)) =>
                {
                    set.set(name, value);
                }
                _ => {
                    removed.push(name.clone());
                    let text =
                        format!("\"{name}\" with this value has no counterpart: origins get no such field");
                    self.note(field, Weight::Guard, text);
                }
            }
        }
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
        let upstream = self.of_http.upstreams.iter().find(|upstream| upstream.argument(0) == named).copied();
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
        let root = scope.word("root").filter(|root| root.starts_with('/') && is_constant(root));
        for param in scope.all(&["fastcgi_param", "scgi_param"]) {
            let [name, value, ..] = param.arguments.as_slice() else { continue };
            let value =
                match (root, value.strip_prefix("$document_root").or(value.strip_prefix("$realpath_root"))) {
                    (Some(root), Some(rest)) if rest.starts_with('/') && is_constant(rest) => {
                        format!("{root}{rest}")
                    }
                    _ => value.clone(),
                };
            let told = TOLD.iter().find(|(told, _)| told == name).map(|(_, value)| *value);
            match told {
                _ if value.is_empty() => {}
                Some(told) if told.split(' ').any(|told| told == value) => {}
                _ if is_constant(&value) && !["SCGI", "CONTENT_LENGTH"].contains(&name.as_str()) => {
                    params.set(name, value);
                }
                None if name.starts_with("HTTP_") && value == format!("${}", name.to_ascii_lowercase()) => {}
                _ => self.leave_out(param),
            }
        }
        if !params.is_empty() {
            keys.set("params", params);
        }
        self.time(scope, "fastcgi_read_timeout", "timeout_ms", &mut keys);
        keys.set("body_bytes_max", body_bytes_max(scope));
        if pass.name == "fastcgi_pass" {
            self.note_libraries(pass, address);
        }
        Some(keys)
    }

    fn note_libraries(&mut self, pass: &Directive, address: &str) {
        let by = if address.starts_with("unix:") {
            "with a library"
        } else {
            "with a library, over a Unix socket"
        };
        let text = format!("{by}, its answers need not pass through the server: see docs/recipes/faster.md");
        self.note(pass, Weight::Remark, text);
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

/// Whether the value of a field has what is not known before there is an answer.
fn tells_of_answer(value: &str) -> bool {
    ["$cache_status", "$upstream"].iter().any(|variable| value.contains(variable))
}

/// What applications are told in any case, and how nginx says it.
const TOLD: &[(&str, &str)] = &[
    ("CONTENT_LENGTH", "$content_length"),
    ("CONTENT_TYPE", "$content_type"),
    ("DOCUMENT_ROOT", "$document_root $realpath_root"),
    ("DOCUMENT_URI", "$document_uri $uri"),
    ("GATEWAY_INTERFACE", "CGI/1.1"),
    ("HTTP_HOST", "$host $http_host $server_name"),
    ("HTTPS", "$https $fastcgi_https"),
    ("PATH_INFO", "$fastcgi_path_info $path_info"),
    (
        "PATH_TRANSLATED",
        "$document_root$fastcgi_path_info $document_root$path_info $realpath_root$fastcgi_path_info",
    ),
    ("QUERY_STRING", "$query_string $args"),
    ("REDIRECT_STATUS", "200"),
    ("REMOTE_ADDR", "$remote_addr"),
    ("REMOTE_PORT", "$remote_port"),
    ("REMOTE_USER", "$remote_user"),
    ("REQUEST_METHOD", "$request_method"),
    ("REQUEST_SCHEME", "$scheme"),
    ("REQUEST_URI", "$request_uri"),
    (
        "SCRIPT_FILENAME",
        "$document_root$fastcgi_script_name $realpath_root$fastcgi_script_name $request_filename $document_root/$fastcgi_script_name",
    ),
    ("SCRIPT_NAME", "$fastcgi_script_name"),
    ("SCGI", "1"),
    ("SERVER_ADDR", "$server_addr"),
    ("SERVER_NAME", "$server_name $host $http_host"),
    ("SERVER_PORT", "$server_port"),
    ("SERVER_PROTOCOL", "$server_protocol"),
    ("SERVER_SOFTWARE", "nginx/$nginx_version nginx"),
];
