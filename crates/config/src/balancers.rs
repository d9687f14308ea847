//! The load balancers in front of each listener, by the `proxy_protocol` of its sites.

use std::collections::HashMap;

use baton_engine::{AddressSet, ListenAddress};

use super::check::{Conflicts, of_site};
use super::client_addresses::address_set;
use super::config::Config;
use super::error::Complaint;

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

impl Config {
    /// Load balancers and proxies in front of any site.
    pub(crate) fn proxies_in_front(&self) -> AddressSet {
        let settings = self.sites.iter().map(|site| &site.settings);
        let from = settings.flat_map(|settings| {
            let balancers = settings.proxy_protocol.iter().flat_map(|protocol| &protocol.from);
            settings.real_ip.iter().flat_map(|rule| &rule.from).chain(balancers)
        });
        address_set(&from.copied().collect::<Vec<_>>())
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
