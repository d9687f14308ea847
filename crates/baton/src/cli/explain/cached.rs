//! What the shared cache does with a request, as far as is known without a response.

use std::fmt::Write;

use baton_cache::{Arrival, CachedRoute, FILM_BLOCKS_MIN, Key, PolicyChoice};
use baton_config::SharedCache;
use baton_http::{HeadLimits, RequestHead};
use baton_site::plan::Site;
use baton_site::rewrites::{Rewrites, RewrittenTarget};

/// What the cache looks for, and what it keeps.
pub(super) fn explain(
    (route, cache): (&CachedRoute, &SharedCache),
    request: &[u8],
    arrival: impl Fn(&RequestHead<'_>) -> Arrival,
) -> Option<(String, String)> {
    let head = RequestHead::parse(request, &HeadLimits::default()).ok()?;
    Some(match route.key_of(arrival(&head), &head) {
        Ok(key) => (
            format!("asked for {}", shown(&key)),
            format!("{}; {}", kept(route, &head), policy(route, cache)),
        ),
        Err(bypass) => (
            format!("not asked: fwd={}; detail={}", bypass.forward().label(), bypass.label()),
            "nothing of this request".into(),
        ),
    })
}

/// The target that goes on where the cache asks for it: without what its key leaves out. `None`: the cache does not ask.
pub(super) fn forwarded_target(
    route: &CachedRoute,
    request: &[u8],
    arrival: impl Fn(&RequestHead<'_>) -> Arrival,
    (planned, path, rewrites): (&Site, &str, &Rewrites),
) -> Option<String> {
    let head = RequestHead::parse(request, &HeadLimits::default()).ok()?;
    let arrival = arrival(&head);
    let key = route.key_of(arrival, &head).ok()?;
    let head = head.with_target(path.as_bytes(), None);
    let rewritten = rewrites.forwarded_target(route, arrival, &head, planned).ok()?;
    Some(match rewritten {
        None => String::from_utf8_lossy(key.target()).into_owned(),
        Some(RewrittenTarget { path, query }) => {
            query.map_or_else(|| path.clone(), |query| format!("{path}?{query}"))
        }
    })
}

/// The URI, and the fields by which its responses are told apart.
fn shown(key: &Key) -> String {
    let uri = String::from_utf8_lossy(key.uri());
    let fields = String::from_utf8_lossy(key.fields());
    let fields: Vec<_> = fields.lines().map(|line| line.replacen(':', ": ", 1)).collect();
    if fields.is_empty() { uri.into_owned() } else { format!("{uri} with {}", fields.join(", ")) }
}

/// Which policy evicts what. The response decides whether it is a film.
fn policy(route: &CachedRoute, cache: &SharedCache) -> String {
    let choice = route.policy.or(PolicyChoice { name: cache.policy, grouping: None });
    let [film, other] = [true, false].map(|is_film| choice.of_object(is_film));
    if film == other {
        return format!("evicted by {other}");
    }
    let film_bytes = FILM_BLOCKS_MIN * cache.block_bytes;
    format!("evicted by {other}; video and sound of more than {film_bytes} bytes by {film}")
}

fn kept(route: &CachedRoute, head: &RequestHead<'_>) -> String {
    let rules = &route.rules;
    let has = |name: &str| head.field(name).is_some();
    let silent = match rules.default_s {
        0 => format!(
            "{} % of the time since Last-Modified, at most {} s",
            rules.heuristic_percent, rules.heuristic_max_s
        ),
        seconds => format!("{seconds} s"),
    };
    let mut text = format!(
        "as the response says, else {silent}; manifests of HLS and DASH {} s, 404 and 410 {} s; errors at most {} s",
        rules.manifest_s, rules.negative_s, rules.error_max_s
    );
    if !rules.stores_set_cookie {
        text.push_str("; nothing with Set-Cookie");
    }
    if has("Authorization") {
        text.push_str("; with Authorization only what says public, s-maxage or must-revalidate");
    }
    if has("Cookie") {
        text.push_str("; with Cookie only what says how long");
    }
    if route.prefetch > 0 {
        let _ = write!(text, "; where names count, the next {} before they are asked for", route.prefetch);
    }
    text
}
