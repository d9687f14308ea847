//! What guards the route, and what it says of one client.

use std::net::{IpAddr, SocketAddr};

use baton_http::{HeadLimits, RequestHead};
use baton_report::counted;
use baton_site::address_range::AddressSet;
use baton_site::guards::{Access, Guards, RateKey};
use baton_site::plan::Site;

use super::lines::Lines;

/// The guards of a path.
pub(super) fn of<'a>(site: &'a Site, path: &[u8]) -> Option<&'a Guards> {
    let route = site.route(path, &mut Vec::new()).ok().flatten();
    route.map_or(&site.guards, |route| &route.guards).as_deref()
}

/// Tells what there is, and what it means for the client. Returns whether that gets nothing else.
pub(super) fn refuse(
    lines: &mut Lines,
    site: &Site,
    path: &[u8],
    client: Option<IpAddr>,
    (request, response): (&[u8], &str),
) -> bool {
    let mut client = client;
    if let (Some(rule), Some(peer)) = (&site.real_address, client)
        && let Ok(head) = RequestHead::parse(request, &HeadLimits::default())
    {
        let behind = rule.of(Some(SocketAddr::new(peer, 1)), &head).map(|address| address.ip());
        let told = match behind {
            Some(behind) => format!("{behind}, whose request the proxy {peer} passes on ({})", rule.field),
            None if rule.from.contains(Some(peer)) => {
                format!("{peer}, a proxy that names no client in {}", rule.field)
            }
            None => format!("{peer}, which is no proxy: its {} is not believed", rule.field),
        };
        lines.add("client", told);
        client = behind.or(client);
    }
    let Some(guards) = of(site, path) else { return false };
    if let (Some(access), Some(client)) = (&guards.access, client) {
        lines.add("access", format!("{} (--from ADDRESS asks for another client)", verdict(access, client)));
    }
    if let Some(methods) = &guards.methods {
        lines.add("methods", format!("{}; others are answered with 405", methods.all()));
    }
    if let Some(limit) = &guards.rate_limit {
        let key = match &limit.key {
            RateKey::Address => "address",
            RateKey::Field(name) => name,
            RateKey::User => "user",
        };
        let (burst, each_ms) = (limit.burst, limit.interval_us.div_ceil(1_000));
        lines.add(
            "rate",
            format!("{} at once, then one in {each_ms} ms, by {key}; others: 429", counted(burst, "request")),
        );
    }
    if guards.basic_auth.is_some() {
        lines.add("password", "asked for: -H 'Authorization: Basic …' explains for a user".into());
    }
    let refuses_get = guards.methods.as_ref().is_some_and(|methods| !methods.contains(b"GET"));
    let is_unknown = guards.basic_auth.is_some() && response.starts_with("HTTP/1.1 401");
    refuses_get || is_unknown || guards.access.as_ref().is_some_and(|access| !access.admits(client))
}

fn verdict(access: &Access, client: IpAddr) -> String {
    let range = |set: &AddressSet| set.ranges.iter().find(|range| range.contains(client)).copied();
    match (range(&access.deny), &access.allow) {
        (Some(denied), _) => format!("{client} is denied: `deny` has {denied}"),
        (None, None) => format!("{client} is let in: `deny` does not have it"),
        (None, Some(allow)) => match range(allow) {
            Some(allowed) => format!("{client} is let in: `allow` has {allowed}"),
            None => format!("{client} is denied: `allow` does not have it"),
        },
    }
}
