//! Proxies and load balancers in front of a site, which say whose requests and connections they pass on.

use std::collections::HashMap;
use std::sync::Arc;

use baton_engine::guards::RealAddress;
use baton_engine::{AddressSet, ListenAddress};

use super::check::{Conflicts, of_site};
use super::client_addresses::{ClientAddress, ClientList, address_set};
use super::config::Config;
use super::error::Complaint;
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

impl Config {
    /// The load balancers in front of each listener that has any.
    pub(crate) fn balancers(
        &self,
        listener_ids: &HashMap<&ListenAddress, usize>,
    ) -> HashMap<usize, AddressSet> {
        let sites = self.sites.iter().filter_map(|site| Some((site, site.settings.proxy_protocol.as_ref()?)));
        let listeners =
            sites.flat_map(|(site, protocol)| site.addresses().map(move |address| (address, protocol)));
        listeners
            .filter_map(|(address, protocol)| {
                Some((*listener_ids.get(address)?, address_set(&protocol.from)))
            })
            .collect()
    }
}

impl Conflicts<'_> {
    /// Two sites of one address, which say different things of its load balancers.
    pub(crate) fn contrary_balancers(&mut self) {
        let mut first: HashMap<&ListenAddress, usize> = HashMap::new();
        for (index, site) in self.config.sites.iter().enumerate() {
            if !["listen", "proxy_protocol"].iter().all(|key| self.is_sound(&of_site(index, key))) {
                continue;
            }
            let protocol = |index: usize| &self.config.sites[index].settings.proxy_protocol;
            let others = site.addresses().map(|address| (address, *first.entry(address).or_insert(index)));
            let others: Vec<_> = others.collect();
            if let Some((address, other)) =
                others.into_iter().find(|(_, other)| protocol(*other) != protocol(index))
            {
                let place = |index| self.raw.span(&of_site(index, "proxy_protocol"));
                let complaint =
                    Complaint::new(format!("two sites differ in the load balancers of {address}"))
                        .at(place(index), "this one")
                        .at(place(other), "differs from this one");
                self.found
                    .push(complaint.help("give both the same `proxy_protocol`, or different addresses"));
            }
        }
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
        true if name.eq_ignore_ascii_case("Forwarded") => Err(Wrong::new(
            "is not read",
            "expected a field that is a list of addresses, such as \"X-Forwarded-For\"",
        )),
        true => Ok(name),
        false => Err(Wrong::new("is not the name of a field", "expected letters, digits and hyphens")),
    },
};
