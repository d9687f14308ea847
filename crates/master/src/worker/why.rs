//! What operators ask of a request: to which node it would go now, by the policy of the running server, and what the shared
//! cache has for it.

use std::time::{SystemTime, UNIX_EPOCH};

use baton_cache::{Arrival, Scheme, SharedCache};
use baton_http::{HeadLimits, RequestHead};
use baton_site::condition::RequestView;
use baton_site::plan::{Action, Delegate, Fetching, Plan};
use baton_upstream::{ChoiceKey, Way};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::control::RouteQuestion;

/// Where this request would go.
///
/// # Errors
/// Why that cannot be said.
pub(super) fn node(plan: &Plan, asked: &RouteQuestion) -> Result<Value, String> {
    let (_, text) = request(asked)?;
    let head = parsed(&text)?;
    if let (None, Some(fetching)) = (plan.cluster(), plan.fetching()) {
        return Ok(home(fetching, &head));
    }
    plan.cluster().ok_or("no route leads to the cluster")?;
    let leads_there = |delegate: &Delegate| delegate.cluster().is_some();
    let delegate = route(plan, &head, leads_there).ok_or("the route of this URL is not to the cluster")?;
    choice(delegate, &head, asked.body.as_bytes())
}

/// Which node has the file of this request in its memory, and whether it is fetched from there.
fn home(fetching: &Fetching, head: &RequestHead<'_>) -> Value {
    let told = fetching.homes.rehearse(head.path, now_ms());
    json!({
        "path": String::from_utf8_lossy(head.path),
        "home": told.home.as_ref().map(|home| home.settings().node.clone()),
        "to": told.home.as_ref().map(|home| home.name()),
        "is_fetched": told.is_fetched,
        "read_us": told.read_us.round(),
        "fetch_us": told.fetch_us.round(),
    })
}

/// By the clock of the loops.
fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

/// What is here of the responses to this request.
///
/// # Errors
/// Why that cannot be said.
pub(super) fn stored(plan: &Plan, cache: &SharedCache, asked: &RouteQuestion) -> Result<Value, String> {
    let (scheme, text) = request(asked)?;
    let head = parsed(&text)?;
    if head.host.is_none() {
        return Err(format!("{} does not say which host: what is stored has one", asked.url));
    }
    let delegate = route(plan, &head, |delegate| delegate.cache.is_some());
    let cached =
        delegate.and_then(|delegate| delegate.cache.as_ref()).ok_or("the route of this URL has no cache")?;
    let arrival = Arrival { scheme, is_trusted: false };
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let parts = cache
        .inventory(cached, arrival, &head, now_s)
        .map_err(|bypass| format!("the cache is not asked for this: {}", bypass.label()))?;
    Ok(json!({ "url": asked.url, "responses": parts }))
}

/// A request for a URL, or for a path.
fn request(asked: &RouteQuestion) -> Result<(Scheme, String), String> {
    let url = &asked.url;
    let (scheme, (host, target)) = match url.split_once("://") {
        Some((scheme, rest)) => (scheme, rest.split_at(rest.find('/').unwrap_or(rest.len()))),
        None => ("", ("", url.as_str())),
    };
    let target = if target.is_empty() { "/" } else { target };
    if !target.starts_with('/') {
        return Err(format!("{url} is neither a URL nor a path"));
    }
    let mut text = match host {
        // Only HTTP/1.0 has requests without a host.
        "" => format!("GET {target} HTTP/1.0\r\n"),
        _ => format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n"),
    };
    asked.fields.iter().for_each(|(name, value)| text.push_str(&format!("{name}: {value}\r\n")));
    let scheme = if scheme.eq_ignore_ascii_case("https") { Scheme::Https } else { Scheme::Http };
    Ok((scheme, text + "\r\n"))
}

fn parsed(text: &str) -> Result<RequestHead<'_>, String> {
    RequestHead::parse(text.as_bytes(), &HeadLimits::default())
        .map_err(|refusal| format!("a server refuses such a request: {refusal}"))
}

/// The delegate of the route that such a request would find, if it is one of these.
fn route<'p>(
    plan: &'p Plan,
    head: &RequestHead<'_>,
    is_one: impl Fn(&Delegate) -> bool,
) -> Option<&'p Delegate> {
    let view = RequestView { head, address: None, has_certificate: false };
    // It does not say where it arrives. A site without listeners is on all of them.
    let listeners = plan.sites().iter().flat_map(|site| site.listeners.iter().copied());
    let sites = listeners.chain([0]).filter_map(|listener| plan.site(listener, head.host));
    sites.map(|site| &plan.sites()[site]).find_map(|site| {
        let index = site.route(&view, &mut Vec::new()).ok()??;
        match &site.routes[index].action {
            Action::Delegated(delegate) | Action::Scripts(_, delegate) => {
                Some(&**delegate).filter(|one| is_one(one))
            }
            _ => None,
        }
    })
}

fn choice(delegate: &Delegate, head: &RequestHead<'_>, body: &[u8]) -> Result<Value, String> {
    let (Some(cluster), Some(nodes)) =
        (delegate.cluster(), delegate.proxy().and_then(|terms| terms.peers.as_ref()))
    else {
        return Err("no route leads to the cluster".into());
    };
    let choice = cluster.key.choice(head, body);
    let told = nodes
        .ask(head.path, choice, now_ms())
        .ok_or("no node gets requests: all are drained, or there is none")?;
    let found = cluster.key.of(head, body).filter(|_| choice != ChoiceKey::Path);
    let shown = found.map(|key| String::from_utf8_lossy(&key[..key.len().min(SHOWN_BYTES)]).into_owned());
    Ok(json!({
        "path": String::from_utf8_lossy(head.path),
        "node": told.application.settings().node,
        "to": told.application.name(),
        "why": told.why.to_string(),
        "word": told.why.word(),
        // Of the first request of a connection that may be handed over.
        "ways": told.ways.map(|ways| json!({
            "bytes": ways.bytes,
            "relay_us": (ways.relay_ns / 1e3).round(),
            "hand_off_us": (ways.hand_off_ns / 1e3).round(),
            "way": if ways.hands_over() { Way::HandOff } else { Way::Relay }.word(),
            "reason": ways.reason.word(),
        })),
        "key": cluster.key.to_string(),
        "value": shown,
        "logged": choice.to_string(),
    }))
}

/// Bytes of a key that are shown.
const SHOWN_BYTES: usize = 120;
