//! Fields of requests that every cached route of a site lets pass beside its key.

use super::site::Site;

impl Site {
    /// The site with caches that keep responses apart by neither the ids of requests nor client addresses.
    pub(super) fn with_unkeyed_fields(self) -> Self {
        let mut site = self;
        let id = site.settings.request_id.as_ref().map(|id| id.header.clone());
        let address = site.settings.real_ip.as_ref().map(|rule| rule.header.clone());
        for cache in site.routes.iter_mut().filter_map(|route| route.settings.cache.as_mut()) {
            cache.unkeyed_fields.extend(id.iter().chain(&address).cloned());
        }
        site
    }
}
