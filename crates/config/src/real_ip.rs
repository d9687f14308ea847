//! Proxies and load balancers in front of a site, which say whose requests and connections they pass on.

use std::sync::Arc;

use baton_site::guards::RealAddress;

use super::client_addresses::{ClientAddress, ClientList, address_set};
use super::setting::settings;
use super::text::{TextOf, Wrong};

settings! {
    /// Proxies that say in a field of their requests whose these are.
    RealIp in "site.real_ip" needs ["from"] {
        /// Addresses of the proxies: `["10.0.0.0/8", "unix:"]`. What any other client says of itself is not believed.
        from: Vec<ClientAddress> = Vec::new(), ClientList;
        /// The field, a list of addresses: the last one that is no proxy of `from` is the client's.
        header: String = "X-Forwarded-For".into(), FIELD_NAME;
    }
}

settings! {
    /// Load balancers that say in front of a connection whose it is.
    ProxyProtocol in "site.proxy_protocol" needs ["from"] {
        /// Addresses of the load balancers: `["10.0.0.0/8", "unix:"]`. Their connections begin with a header of the PROXY
        /// protocol, version 1 or 2, or are closed. All other clients speak HTTP or TLS at once.
        from: Vec<ClientAddress> = Vec::new(), ClientList;
    }
}

impl RealIp {
    /// What the engine makes of it.
    pub(crate) fn plan(&self) -> Arc<RealAddress> {
        Arc::new(RealAddress { from: address_set(&self.from), field: self.header.clone() })
    }
}

/// The name of a field with addresses.
const FIELD_NAME: TextOf = TextOf {
    accepted: "the name of a field such as \"X-Forwarded-For\" or \"X-Real-IP\"",
    check: |name| match name.bytes().all(baton_http::is_token_byte) {
        true if baton_http::is_same_field(&name, "Forwarded") => Err(Wrong::new(
            "is not read",
            "expected a field that is a list of addresses, such as \"X-Forwarded-For\"",
        )),
        true => Ok(name),
        false => Err(Wrong::new("is not the name of a field", "expected letters, digits and hyphens")),
    },
};
