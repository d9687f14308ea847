//! The origins of a route, or the nodes of the cluster: which would be asked, and why not the others.

use std::collections::HashMap;

use baton_config::{Config, ConfiguredOrigin, ControlSocket, PemFiles, Resources, Route};
use baton_dispatch::{PolicyName, Why};
use baton_engine::ListenAddress;
use baton_http::RequestHead;
use baton_master::control::{self, Command};
use baton_site::cluster_key::ClusterKey;
use baton_site::plan::{Action, ClusterWay, Fetching};
use baton_upstream::{ChoiceKey, OriginTable, Rehearsed};
use serde_json::Value;

use super::super::output::Failure;
use super::lines::Lines;

/// What a node is chosen by.
pub(super) fn key(key: &ClusterKey, asked: &RequestHead<'_>) -> String {
    match key.of(asked, b"") {
        Some(found) => format!("{key}: {}", String::from_utf8_lossy(&found)),
        None if key.body_bytes() > 0 => {
            format!("{key}, which a GET lacks: its path (`baton ctl cluster why --body` asks for a body)")
        }
        None => format!("{key}, which is missing: the path"),
    }
}

/// Which node has a file of this path, for the other nodes.
pub(super) fn home(fetching: &Fetching, path: &str) -> String {
    let Some(home) = fetching.homes.rehearse(path.as_bytes(), 0).home else {
        return "this node: others fetch it from here".into();
    };
    let node = home.settings().node.as_deref().unwrap_or_default();
    format!(
        "node {node} at {}, which is asked for it on connections that were handed over, if it is not in memory here \
         (`baton ctl cluster why` says whether that is faster now)",
        home.name()
    )
}

/// What is known of an origin.
struct Origin<'c> {
    configured: ConfiguredOrigin<'c>,
    /// Its state in the running server, in a word, and why.
    state: (String, String),
}

/// Adds a line for each origin of the route.
pub(super) fn explain(
    lines: &mut Lines,
    config: &Config,
    ids: &HashMap<&ListenAddress, usize>,
    (site, route): (&str, &str),
    asked: &RequestHead<'_>,
) -> Result<(), Failure> {
    let status = status(config);
    let origins: Vec<_> = config
        .origins()
        .filter(|origin| is_its(origin, config, site, route))
        .map(|configured| Origin { state: state(status.as_ref(), &configured), configured })
        .collect();
    let policy = policy(config, site, route);
    let chosen = choose(config, ids, &origins, (site, route), asked)?;
    for (number, Origin { configured, state: (word, why) }) in origins.iter().enumerate() {
        let url = &configured.name.origin;
        let told = match &chosen {
            _ if is_out(word) => format!("{word} {why}"),
            Some((chosen, why)) if chosen == url => match why {
                Some(why) => format!("is asked: {} ({why})", why.word()),
                None => "is asked".into(),
            },
            _ if configured.backup => "a backup: asked while all others are out".into(),
            _ => format!("{}: {}", baton_config::word_of(policy), why_not(policy)),
        };
        let shown = if word == SLOW_START { format!("{told}; {word}: {why}") } else { told };
        let name = match &configured.node {
            Some(node) if **node != *url => format!("{node} ({url})"),
            _ => url.clone(),
        };
        let what = if configured.node.is_some() { "nodes" } else { "origins" };
        lines.add(if number == 0 { what } else { "" }, format!("{name}: {shown}"));
    }
    let known = match &status {
        Some(status) => format!("of the running server, process {}", status["pid"]),
        None => "not known, since no running server was found: all count as up".into(),
    };
    lines.add("states", known);
    if let Some(cluster) = configured(config, site, route).and_then(|route| route.settings.cluster.as_ref()) {
        lines.add("way", way(config, cluster.way.unwrap_or(config.cluster.way)));
    }
    Ok(())
}

/// How requests get to their nodes.
fn way(config: &Config, way: ClusterWay) -> String {
    let takes_connections = config.cluster.nodes.iter().any(|node| node.mover.is_some());
    match way {
        ClusterWay::Auto if takes_connections => {
            "relayed or handed over, whichever costs less: `baton ctl cluster why` compares".into()
        }
        ClusterWay::Auto => "relayed: no node has a `mover`".into(),
        way => baton_config::word_of(way).to_string(),
    }
}

/// Whether requests of a route can get to an origin.
fn is_its(origin: &ConfiguredOrigin<'_>, config: &Config, site: &str, route: &str) -> bool {
    match &origin.node {
        Some(_) => configured(config, site, route).is_some_and(|route| route.settings.cluster.is_some()),
        None => (&*origin.name.site, &*origin.name.route) == (site, route),
    }
}

fn configured<'c>(config: &'c Config, site: &str, route: &str) -> Option<&'c Route> {
    let sites = config.sites.iter().filter(|one| one.name() == site);
    sites.flat_map(|site| &site.routes).find(|one| one.settings.name() == route)
}

const SLOW_START: &str = "slow-start";

fn is_out(word: &str) -> bool {
    !matches!(word, "up" | SLOW_START)
}

/// The status of a server that runs, if it says where: most likely with this configuration.
fn status(config: &Config) -> Option<Value> {
    ask(config, Command::Status)
}

/// Asks the server that runs, if it says where.
fn ask(config: &Config, command: Command) -> Option<Value> {
    let path = match &config.server.control_socket {
        ControlSocket::Auto => control::usual_path(),
        ControlSocket::Path(path) => path.clone(),
        ControlSocket::Off => return None,
    };
    serde_json::from_str(&control::request(&path, command).ok()?).ok()
}

/// Where the running server has the document at a path, and the head with which it redirects there if that is elsewhere. `None`: no
/// server runs, or it knows no such document.
pub(super) fn document(config: &Config, path: &str) -> Option<(String, Option<String>)> {
    let told = ask(config, Command::Document(path.to_owned()))?;
    let one = told["told"].as_array()?.first()?;
    let why = one["why"].as_str().unwrap_or_default();
    match one["address"].as_str().filter(|_| one["announced"] == true) {
        None => Some((format!("at home: {why}"), None)),
        Some(address) => {
            let head = format!(
                "HTTP/1.1 307 Temporary Redirect\r\nLocation: {address}\r\nCache-Control: no-store\r\n\r\n"
            );
            Some((format!("away, at {address}: {why}"), Some(head)))
        }
    }
}

fn state(status: Option<&Value>, origin: &ConfiguredOrigin<'_>) -> (String, String) {
    let name = &origin.name;
    let is_its = |one: &&Value| {
        (one["site"].as_str(), one["route"].as_str(), one["origin"].as_str())
            == (Some(&name.site), Some(&name.route), Some(&name.origin))
    };
    let origins = status.and_then(|status| status["origins"].as_array());
    let known = origins.into_iter().flatten().find(is_its);
    let text =
        |key: &str, unknown: &str| known.and_then(|one| one[key].as_str()).unwrap_or(unknown).to_owned();
    (text("state", "up"), text("why", ""))
}

fn policy(config: &Config, site: &str, route: &str) -> PolicyName {
    let proxy = configured(config, site, route).and_then(|route| config.proxy_of(route));
    proxy.map_or(PolicyName::Wrr, |proxy| proxy.policy)
}

/// Lets the policy choose among origins in these states, as a server would that has just begun.
fn choose(
    config: &Config,
    ids: &HashMap<&ListenAddress, usize>,
    origins: &[Origin<'_>],
    (site, route): (&str, &str),
    asked: &RequestHead<'_>,
) -> Result<Option<(String, Option<Why>)>, Failure> {
    let is_drained = |origin: &&Origin<'_>| origin.state.0 == "drained";
    let serves = |origin: &&Origin<'_>| !is_out(&origin.state.0);
    // Those that are ejected or down are asked if nothing else is left.
    let all_are_out = !origins.iter().any(|origin| serves(&origin));
    let table = OriginTable::allocate(1)?;
    for (row, origin) in origins.iter().enumerate() {
        table.begin(row, &origin.configured.name);
        let is_left_out = is_drained(&origin) || !(all_are_out || serves(&origin));
        table.verdicts(row).set_drained(is_left_out);
    }
    let pem_files = PemFiles::read(config)?;
    let plan =
        config.plan(ids, &Resources { pem_files, origins: Some((table, 0)), ..Resources::default() })?;
    let Some(origin) = origins.first() else { return Ok(None) };
    let sites = plan.sites().iter().filter(|one| one.name == site);
    let mut routes = sites.flat_map(|site| &site.routes);
    let delegate = routes.find_map(|one| match &one.action {
        Action::Delegated(delegate) if one.matcher.to_string() == route => Some(delegate),
        _ => None,
    });
    let chosen = delegate.and_then(|delegate| match &delegate.proxy()?.peers {
        Some(peers) => {
            let (target, choice) = match delegate.cluster() {
                Some(cluster) => (asked.path, cluster.key.choice(asked, b"")),
                None => (asked.target, ChoiceKey::Path),
            };
            let Rehearsed { application, why, .. } = peers.rehearse(target, choice)?;
            Some((application, origin.configured.node.is_some().then_some(why)))
        }
        None => (!is_drained(&origin)).then(|| (delegate.application.clone(), None)),
    });
    Ok(chosen.map(|(application, why)| (application.name().to_owned(), why)))
}

/// Why a policy has chosen another one.
fn why_not(policy: PolicyName) -> &'static str {
    match policy {
        PolicyName::Wrr => "its turn comes by weight",
        PolicyName::LeastConnections | PolicyName::PowerOfTwo => {
            "asked when it has fewer requests under way for its weight"
        }
        PolicyName::Lard | PolicyName::LardR | PolicyName::LardH => {
            "gets other paths, and this one when loads are out of balance"
        }
        PolicyName::BoundedHash => "gets other paths, and this one when the other has too many requests",
        _ => "gets other paths",
    }
}
