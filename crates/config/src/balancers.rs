//! The load balancers in front of each listener, by the `proxy_protocol` of its sites.

use std::collections::HashMap;

use baton_engine::ListenAddress;
use baton_site::address_range::AddressSet;

use super::check::{Conflicts, of_site};
use super::client_addresses::address_set;
use super::config::Config;
use super::error::Complaint;
use super::route::Route;

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
    /// Load balancers and proxies in front of any site: those that say whose a connection or request is, and those whose word on
    /// a request is passed on, unless they are a network so wide that it has clients, too.
    pub(crate) fn proxies_in_front(&self) -> AddressSet {
        let settings = self.sites.iter().map(|site| &site.settings);
        let from = settings.flat_map(|settings| {
            let balancers = settings.proxy_protocol.iter().flat_map(|protocol| &protocol.from);
            settings.real_ip.iter().flat_map(|rule| &rule.from).chain(balancers)
        });
        let routes = self.sites.iter().flat_map(|site| &site.routes);
        let trusted = routes.flat_map(|Route { settings, .. }| {
            let of_origin = settings.proxy.iter().flat_map(|proxy| &proxy.trusted);
            let of_application = settings.application().into_iter().flat_map(|(_, it)| &it.trusted);
            of_origin.chain(of_application).filter(|clients| clients.is_narrow())
        });
        address_set(&from.chain(trusted).copied().collect::<Vec<_>>())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a front-end that only a route names has no share. A network of clients that are trusted has one, or each client there
    /// could take all.
    #[test]
    fn who_is_trusted_stands_in_front_unless_it_is_a_wide_network() {
        let config = Config::from_toml(
            "[[site]]\nproxy_protocol = { from = ['10.1.0.0/16'] }\n[[site.route]]\npath = '/a'\nproxy = { to = 'http://a', \
             trusted = ['192.0.2.7', '10.2.0.0/16', 'fd00::/64', 'fd01::/48'] }\n[[site.route]]\npath = '/b'\nfastcgi = { to = \
             'unix:/b', trusted = ['198.51.100.0/24', '0.0.0.0/0'] }\n",
        );
        let proxies = config.unwrap_or_else(|error| panic!("{error}")).proxies_in_front();
        let is_one = |address: &&str| proxies.contains(Some(address.parse().unwrap()));
        let (in_front, clients) = (
            ["10.1.2.3", "192.0.2.7", "fd00::1", "198.51.100.9"],
            ["192.0.2.8", "10.2.0.1", "fd01::1", "203.0.113.1"],
        );
        assert!(in_front.iter().all(&is_one) && !clients.iter().any(is_one));
    }
}
