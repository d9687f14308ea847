//! Where a request would go now: the policy of the running server is asked.

use baton_site::plan::Plan;
use baton_upstream::Way;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// Where a request for this URL, or for this path, would go.
///
/// # Errors
/// Why that cannot be said.
pub(super) fn why(plan: &Plan, url: &str) -> Result<Value, String> {
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => url,
    };
    if !path.starts_with('/') {
        return Err(format!("{url} is neither a URL nor a path"));
    }
    let nodes = plan.cluster().ok_or("no route leads to the cluster")?;
    // The clock of the loops.
    let now = clock_gettime(ClockId::MonotonicCoarse);
    let now_ms = now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000;
    let told = nodes
        .ask(path.as_bytes(), now_ms)
        .ok_or("no node gets requests: all are drained, or there is none")?;
    let settings = told.application.settings();
    Ok(json!({
        "path": path,
        "node": settings.node,
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
    }))
}
