//! What guards the route, and what it says of one client.

use std::net::{IpAddr, SocketAddr};

use baton_http::RequestHead;
use baton_report::counted;
use baton_site::address_range::AddressSet;
use baton_site::condition::RequestView;
use baton_site::guards::{Access, Guards, RateKey};
use baton_site::plan::Site;

use super::lines::Lines;

/// Tells whose request it is behind proxies, and returns that client.
pub(super) fn client_behind(
    lines: &mut Lines,
    site: &Site,
    client: Option<IpAddr>,
    head: &RequestHead<'_>,
) -> Option<IpAddr> {
    let mut client = client;
    if let (Some(rule), Some(peer)) = (&site.real_address, client) {
        let behind = rule.of(Some(SocketAddr::new(peer, 1)), head).map(|address| address.ip());
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
    client
}

/// Tells what there is, and what it means for the client. Returns whether that gets nothing else.
pub(super) fn refuse(
    lines: &mut Lines,
    guards: Option<&Guards>,
    view: &RequestView<'_>,
    response: &str,
) -> bool {
    let Some(guards) = guards else { return false };
    let client = view.address;
    if let (Some(access), Some(client)) = (&guards.access, client) {
        lines.add("access", format!("{} (--from ADDRESS asks for another client)", verdict(access, client)));
    }
    let is_denied = guards.denied.as_ref().is_some_and(|denied| denied.holds(view));
    if let Some(denied) = &guards.denied {
        lines.add("denied", format!("{}: {denied}", if is_denied { "yes" } else { "no" }));
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
        if let Some(when) = &limit.when {
            let verdict =
                if when.holds(view) { "this request is counted" } else { "this request is not counted" };
            lines.add("rate", format!("{verdict}: {when}"));
        }
    }
    let users = guards.users_for(client);
    if guards.basic_auth.is_some() && users.is_none() {
        lines.add("password", "not asked for: the address is enough (satisfy = \"any\")".into());
    }
    if users.is_some() {
        lines.add("password", "asked for: -H 'Authorization: Basic …' explains for a user".into());
    }
    let refuses_get = guards.methods.as_ref().is_some_and(|methods| !methods.contains(b"GET"));
    let is_unknown = users.is_some() && response.starts_with("HTTP/1.1 401");
    is_denied || refuses_get || is_unknown || !guards.admits(client)
}

fn verdict(access: &Access, client: IpAddr) -> String {
    let range = |set: &AddressSet| set.ranges.of_address(client).copied();
    match (range(&access.deny), &access.allow) {
        (Some(denied), _) => format!("{client} is denied: `deny` has {denied}"),
        (None, None) => format!("{client} is let in: `deny` does not have it"),
        (None, Some(allow)) => match range(allow) {
            Some(allowed) => format!("{client} is let in: `allow` has {allowed}"),
            None => format!("{client} is denied: `allow` does not have it"),
        },
    }
}
