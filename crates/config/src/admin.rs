//! `[admin]`: figures for monitoring.

use baton_engine::listen::ListenAddress;

use super::address::Addresses;
use super::kind::{Flag, ListOf, Or};
use super::setting::settings;
use super::text::{TextOf, Wrong};

settings! {
    /// Figures for monitoring, over HTTP: Prometheus text at `/metrics`, JSON at `/status`, `/healthz`. All but `hosts`
    /// needs a restart.
    Admin in "admin" {
        /// Addresses of the listener. It has no access control: choose one that only monitoring reaches.
        listen: Option<Vec<ListenAddress>> = None, Or("off", Addresses);
        /// Host names by which clients reach the listener, beside IP addresses and `localhost`. On loopback a request for another
        /// host gets 421: a page of any site could have a browser send it, by a name that has come to lead there (DNS rebinding).
        /// On other addresses that holds if names stand here.
        hosts: Vec<String> = Vec::new(), ListOf(HOST_NAME);
        /// Whether a POST to `/purge` purges the shared cache.
        purge: bool = false, Flag;
    }
}

/// The name of a host, without a port, in lower case.
const HOST_NAME: TextOf = TextOf {
    accepted: "a host such as \"monitoring.example.org\", without a port",
    check: |host| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        match !host.is_empty() && host.bytes().all(is_plain) {
            true => Ok(host.trim_end_matches('.').to_ascii_lowercase()),
            false => Err(Wrong::new("has a bad host name", "expected a name without a port")),
        }
    },
};
