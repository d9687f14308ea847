//! What `baton check` says of origins.

use std::sync::Arc;
use std::time::Duration;

use baton_config::{Config, Eject, Proxy, Target, word_of};
use baton_dispatch::PolicyName;
use baton_names::{Name, Names};

/// The origins of a route, and what may surprise its operator, a line each.
pub(super) fn lines(route: &str, proxy: &Proxy, names: &Names) -> Vec<String> {
    let urls: Vec<_> = proxy
        .to
        .iter()
        .map(|origin| match (origin.weight, origin.backup) {
            (_, true) => format!("{} (backup)", origin.to),
            (1, false) => origin.to.to_string(),
            (weight, false) => format!("{} (weight {weight})", origin.to),
        })
        .collect();
    let mut lines = vec![match &urls[..] {
        [url] => format!("{route}: the origin {url}"),
        urls => format!("{route}: {} origins by {}: {}", urls.len(), word_of(proxy.policy), urls.join(", ")),
    }];
    lines.extend(advice(proxy, names).into_iter().map(|advice| format!("  warning: {advice}")));
    lines
}

fn advice(proxy: &Proxy, names: &Names) -> Vec<String> {
    let mut advice = Vec::new();
    let is_alone = proxy.to.len() == 1;
    let idle = [
        ("eject", proxy.eject.as_ref().is_some_and(|eject| *eject != Eject::default())),
        ("policy", proxy.policy != PolicyName::Wrr),
        ("slow_start_ms", proxy.slow_start_ms > 0),
    ];
    for (setting, _) in idle.into_iter().filter(|(_, is_set)| is_alone && *is_set) {
        advice.push(format!(
            "`{setting}` has no effect: one origin alone gets every request, whatever it does"
        ));
    }
    for origin in &proxy.to {
        if origin.to.tls && !proxy.tls.verify {
            advice.push(format!(
                "the certificate of {} is not verified: a machine in between can read and change everything",
                origin.to
            ));
        }
        if let Target::Host(host, _) = &origin.to.target
            && names.watch(host).addresses().is_empty()
        {
            advice.push(format!(
                "{host} has no address now: until it has one, requests for {} fail",
                origin.to
            ));
        }
    }
    advice
}

/// Looks up the hosts of all origins. Their addresses are known as long as what is returned is held.
///
/// # Errors
/// No thread can be started.
pub(super) fn look_up(config: &Config, names: &Names) -> std::io::Result<Vec<Arc<Name>>> {
    names.ask(&config.server.dns_servers);
    let hosts = config.origins().filter_map(|origin| match &origin.url.target {
        Target::Host(host, _) => Some(names.watch(host)),
        Target::Tcp(_) | Target::Unix(_) => None,
    });
    let held = hosts.collect();
    names.begin(PATIENCE)?;
    Ok(held)
}

/// As long as a name server may take to say that there is no such name.
const PATIENCE: Duration = Duration::from_secs(10);
