//! `[admin]`: figures for monitoring.

use baton_engine::listen::ListenAddress;

use super::address::Addresses;
use super::kind::{Flag, Or};
use super::setting::settings;

settings! {
    /// Figures for monitoring, over HTTP: Prometheus text at `/metrics`, JSON at `/status`, `/healthz`. Needs a restart.
    Admin in "admin" {
        /// Addresses of the listener. It has no access control: choose one that only monitoring reaches.
        listen: Option<Vec<ListenAddress>> = None, Or("off", Addresses);
        /// Whether a POST to `/purge` purges the shared cache.
        purge: bool = false, Flag;
    }
}
