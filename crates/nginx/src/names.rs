//! What becomes of a directive, by its name.

/// What becomes of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The directive is translated; what cannot be has a note of its own.
    Translated,
    /// Baton does so by itself, or has no need of it.
    Needless,
    /// The directive is left out, and answers may differ.
    LeftOut,
    /// The directive guards something, and is left out.
    Guard,
}

/// The fate of a directive with this name and first argument.
pub(crate) fn fate(name: &str, value: &str) -> Fate {
    if let Some((_, values)) = NEEDLESS_WITH.iter().find(|(known, _)| *known == name) {
        if values.contains(&value) { Fate::Needless } else { Fate::LeftOut }
    } else if TRANSLATED.contains(&name) || is_of_cache(name) {
        Fate::Translated
    } else if NEEDLESS.contains(&name) || NEEDLESS_BEGINNINGS.iter().any(|start| name.starts_with(start)) {
        Fate::Needless
    } else if GUARDS.iter().any(|start| name.starts_with(start)) {
        Fate::Guard
    } else {
        Fate::LeftOut
    }
}

/// Directives of caches, without `proxy_` or `fastcgi_`.
const CACHE_DIRECTIVES: &[&str] = &[
    "cache",
    "cache_bypass",
    "cache_key",
    "cache_methods",
    "cache_path",
    "cache_use_stale",
    "cache_valid",
    "ignore_headers",
    "no_cache",
];

/// Whether a directive says how responses are kept.
fn is_of_cache(name: &str) -> bool {
    ["proxy_", "fastcgi_", "scgi_"]
        .iter()
        .filter_map(|kind| name.strip_prefix(kind))
        .any(|rest| CACHE_DIRECTIVES.contains(&rest))
}

const TRANSLATED: &[&str] = &[
    "access_by_lua",
    "access_by_lua_block",
    "access_by_lua_file",
    "access_log",
    "add_header",
    "alias",
    "allow",
    "auth_basic",
    "auth_basic_user_file",
    "auth_jwt",
    "auth_request",
    "autoindex",
    "client_body_timeout",
    "client_header_timeout",
    "client_max_body_size",
    "default_type",
    "deny",
    "disable_symlinks",
    "error_log",
    "error_page",
    "events",
    "expires",
    "fastcgi_connect_timeout",
    "fastcgi_hide_header",
    "fastcgi_intercept_errors",
    "fastcgi_param",
    "fastcgi_pass",
    "fastcgi_read_timeout",
    "fastcgi_send_timeout",
    "gzip",
    "http",
    "if",
    "index",
    "internal",
    "ip_hash",
    "js_access",
    "keepalive",
    "keepalive_requests",
    "keepalive_timeout",
    "least_conn",
    "limit_conn",
    "limit_except",
    "limit_req",
    "limit_req_dry_run",
    "listen",
    "location",
    "proxy_connect_timeout",
    "proxy_hide_header",
    "proxy_intercept_errors",
    "proxy_pass",
    "proxy_read_timeout",
    "proxy_redirect",
    "proxy_send_timeout",
    "proxy_set_header",
    "proxy_ssl_certificate",
    "proxy_ssl_certificate_key",
    "proxy_ssl_name",
    "proxy_ssl_trusted_certificate",
    "proxy_ssl_verify",
    "real_ip_header",
    "return",
    "rewrite",
    "root",
    "satisfy",
    "scgi_param",
    "scgi_pass",
    "secure_link",
    "send_timeout",
    "server",
    "server_name",
    "set_real_ip_from",
    "ssl_certificate",
    "ssl_certificate_key",
    "ssl_client_certificate",
    "ssl_crl",
    "ssl_protocols",
    "ssl_verify_client",
    "try_files",
    "types",
    "underscores_in_headers",
    "upstream",
    "user",
    "valid_referers",
    "worker_connections",
    "log_format",
    "limit_req_zone",
    "limit_conn_zone",
];

/// Tuning that Baton does by itself, and what it always or never does.
const NEEDLESS: &[&str] = &[
    "absolute_redirect",
    "accept_mutex",
    "aio",
    "charset_types",
    "chunked_transfer_encoding",
    "client_body_buffer_size",
    "client_body_temp_path",
    "client_header_buffer_size",
    "connection_pool_size",
    "daemon",
    "directio",
    "fastcgi_index",
    "fastcgi_keep_conn",
    "fastcgi_split_path_info",
    "http3",
    "ignore_invalid_headers",
    "keepalive_disable",
    "large_client_header_buffers",
    "limit_conn_log_level",
    "limit_conn_status",
    "limit_req_log_level",
    "load_module",
    "log_not_found",
    "log_subrequest",
    "master_process",
    "multi_accept",
    "output_buffers",
    "pcre_jit",
    "pid",
    "port_in_redirect",
    "postpone_output",
    "proxy_buffering",
    "proxy_max_temp_file_size",
    "proxy_request_buffering",
    "fastcgi_request_buffering",
    "proxy_socket_keepalive",
    "proxy_ssl_server_name",
    "proxy_ssl_session_reuse",
    "quic_retry",
    "read_ahead",
    "request_pool_size",
    "reset_timedout_connection",
    "sendfile",
    "sendfile_max_chunk",
    "server_name_in_redirect",
    "server_tokens",
    "ssl_buffer_size",
    "ssl_ciphers",
    "ssl_dhparam",
    "ssl_early_data",
    "ssl_ecdh_curve",
    "ssl_prefer_server_ciphers",
    "tcp_nodelay",
    "tcp_nopush",
    "types_hash_max_size",
    "use",
];

/// What Baton does in any case, and the values with which nginx does it, too.
const NEEDLESS_WITH: &[(&str, &[&str])] = &[
    ("charset", &["utf-8", "UTF-8", "off"]),
    ("etag", &["on"]),
    ("gzip_static", &["on", "off"]),
    ("http2", &["on"]),
    ("http2_max_concurrent_streams", &["128"]),
    ("if_modified_since", &["exact"]),
    ("limit_req_status", &["429"]),
    ("max_ranges", &[]),
    ("merge_slashes", &["on"]),
    ("proxy_http_version", &["1.0", "1.1"]),
    ("real_ip_recursive", &["on"]),
];

const NEEDLESS_BEGINNINGS: &[&str] = &[
    "fastcgi_cache_background_update",
    "fastcgi_cache_lock",
    "fastcgi_cache_min_uses",
    "fastcgi_cache_revalidate",
    "fastcgi_buffer",
    "fastcgi_busy",
    "fastcgi_temp",
    "gzip_",
    "http2_",
    "lingering_",
    "open_file_cache",
    "proxy_buffer",
    "proxy_busy",
    "proxy_cache_background_update",
    "proxy_cache_convert_head",
    "proxy_cache_lock",
    "proxy_cache_min_uses",
    "proxy_cache_revalidate",
    "proxy_temp",
    "scgi_buffer",
    "scgi_temp",
    "uwsgi_temp",
    "server_names_hash",
    "ssl_session_",
    "types_hash",
    "worker_",
];

/// How names of directives begin that guard something.
const GUARDS: &[&str] = &[
    "access_by_lua",
    "auth_",
    "js_access",
    "limit_",
    "modsecurity",
    "naxsi",
    "perl_access",
    "proxy_ssl_certificate",
    "referer_",
    "secure_link",
    "ssl_trusted",
    "ssl_verify",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_are_not_mistaken_for_tuning() {
        for name in ["auth_delay", "limit_rate", "ssl_verify_depth", "secure_link_md5"] {
            assert_eq!(fate(name, "x"), Fate::Guard, "{name}");
        }
        assert_eq!(fate("ssl_session_cache", "off"), Fate::Needless);
        assert_eq!(fate("sub_filter", "a"), Fate::LeftOut);
        assert_eq!(fate("server_name", "a"), Fate::Translated);
        assert_eq!(fate("merge_slashes", "on"), Fate::Needless);
        assert_eq!(fate("merge_slashes", "off"), Fate::LeftOut);
    }
}
