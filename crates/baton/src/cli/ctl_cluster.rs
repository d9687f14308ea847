//! `baton ctl cluster`: the nodes of a running server's cluster, where a target goes, and orders about nodes.

use std::time::Duration;

use baton_master::control::{ClusterCommand, Command, RouteQuestion};
use baton_report::counted;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::command_line::parse_header;
use super::status::{elements, plain, table};

/// Show the nodes of the cluster, or do something about one
///
/// Orders about nodes that are registered in etcd are written there: all front-ends follow them, and they stay when the node
/// restarts. Other nodes are drained by all members that share a key with this server; without a key, by this server alone.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(super) struct Cluster {
    #[command(subcommand)]
    request: Option<Request>,
}

#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
enum Request {
    /// Say to which node a request would go now, and why
    Why {
        /// The URL, or its path alone
        #[arg(value_name = "URL")]
        url: String,
        /// Field of the request, if its route has a `key` there; may be repeated
        #[arg(short = 'H', long, value_name = "NAME:VALUE", value_parser = parse_header)]
        header: Vec<(String, String)>,
        /// Body of the request, if its route has a `key` there
        #[arg(long, value_name = "TEXT", default_value = "")]
        body: String,
    },
    /// Let a node get no new requests, and give back connections that were handed over to it; shows what is left of them
    Drain {
        /// Its name
        #[arg(value_name = "NODE")]
        node: String,
        /// Until when the command waits for the node to be empty; 0: it does not
        #[arg(long, value_name = "SECONDS", default_value_t = 30)]
        wait: u64,
    },
    /// Let a node get requests again
    Undrain {
        /// Its name
        #[arg(value_name = "NODE")]
        node: String,
    },
    /// Give a node of etcd another weight than its own
    Weight {
        /// Its name
        #[arg(value_name = "NODE")]
        node: String,
        /// How much it takes, in relation to the others
        #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
        weight: u32,
    },
}

impl Cluster {
    /// What the server is asked.
    pub(super) fn command(&self) -> Command {
        let order = |node: &str, drained, weight| {
            Command::Cluster(ClusterCommand::Order { node: node.to_owned(), drained, weight })
        };
        match &self.request {
            None => Command::Status,
            Some(Request::Why { url, header, body }) => {
                let (url, fields, body) = (url.clone(), header.clone(), body.clone());
                Command::Cluster(ClusterCommand::Why(RouteQuestion { url, fields, body }))
            }
            Some(Request::Drain { node, .. }) => order(node, Some(true), None),
            Some(Request::Undrain { node }) => order(node, Some(false), None),
            Some(Request::Weight { node, weight }) => order(node, None, Some(*weight)),
        }
    }

    /// The part of the answer that was asked for.
    pub(super) fn part<'a>(&self, told: &'a Value) -> &'a Value {
        if self.request.is_none() { &told["cluster"] } else { told }
    }

    /// The node that was drained, and how long to wait until it is empty.
    pub(super) fn awaited(&self) -> Option<(&str, Duration)> {
        match &self.request {
            Some(Request::Drain { node, wait }) if *wait > 0 => Some((node, Duration::from_secs(*wait))),
            _ => None,
        }
    }

    /// The part of the answer that was asked for, as text for humans.
    pub(super) fn for_humans(&self, told: &Value) -> String {
        match &self.request {
            None => nodes(told),
            Some(Request::Why { .. }) if told["is_fetched"].is_boolean() => home(told),
            Some(Request::Why { .. }) => {
                let [path, node, to, why] = ["path", "node", "to", "why"].map(|key| plain(&told[key]));
                format!("{path}: node {node} at {to}\n  {why}\n  {}\n{}", key(told), ways(&told["ways"]))
            }
            Some(_) => {
                let [node, ordered, by] = ["node", "ordered", "by"].map(|key| plain(&told[key]));
                let whom = match &*by {
                    "etcd" => "in etcd, for all front-ends",
                    "members" => "by all members of the cluster",
                    _ => "by this server alone",
                };
                format!("node {node}: {ordered}, {whom}\n")
            }
        }
    }
}

/// The home of a file, as another node sees it.
fn home(told: &Value) -> String {
    let [path, home, to, read, fetch] =
        ["path", "home", "to", "read_us", "fetch_us"].map(|key| plain(&told[key]));
    if told["home"].is_null() {
        return format!("{path}: this node is the home\n");
    }
    let way = if told["is_fetched"] == true { "fetched from there" } else { "read here" };
    format!(
        "{path}: home {home} at {to}\n  on a connection that was handed over, and not in memory: {way}; lately reading took {read} µs, \
         fetching {fetch} µs\n"
    )
}

/// What the node was chosen by.
fn key(told: &Value) -> String {
    let [key, logged] = ["key", "logged"].map(|name| plain(&told[name]));
    match &told["value"] {
        Value::Null if key == logged => "chosen by the path".into(),
        Value::Null => format!("chosen by the path, since the request has no {key}"),
        value => format!("chosen by {key}: {value}, in logs {logged}"),
    }
}

/// The columns of the nodes.
const COLUMNS: [(&str, &str); 12] = [
    ("node", "name"),
    ("url", "to"),
    ("source", "source"),
    ("state", "state"),
    ("weight", "weight"),
    ("load", "load"),
    ("requests", "requests"),
    ("failures", "failures"),
    ("moved here", "moved"),
    ("had it", "had"),
    ("handed over", "handed"),
    ("fetched from", "fetched"),
];

/// The reasons for which a node is chosen that has had the target before, as far as the policy knows.
const HAD: [&str; 2] = ["mapped", "hashed"];

fn nodes(cluster: &Value) -> String {
    if cluster.is_null() {
        return "no node of a cluster is asked\n".into();
    }
    let moves = ["moved", "replicated"];
    let rows: Vec<Value> = elements(&cluster["nodes"])
        .iter()
        .map(|node| {
            let mut row = node.clone();
            let chosen =
                |whys: &[&str]| -> u64 { whys.iter().filter_map(|why| node["choices"][why].as_u64()).sum() };
            row["moved"] = chosen(&moves).into();
            row["had"] = share(chosen(&HAD), node["choices"].as_object()).into();
            row["handed"] = node["ways"]["handoff"].as_u64().unwrap_or_default().into();
            row["fetched"] = node["ways"]["fetch"].as_u64().unwrap_or_default().into();
            row
        })
        .collect();
    let (policy, thresholds) = (plain(&cluster["policy"]), of_thresholds(&cluster["thresholds"]));
    let mut out = format!("policy {policy}\n{thresholds}\n{}", table(&rows, &COLUMNS));
    if let Some(costs) = rows.iter().map(|row| &row["costs"]).find(|costs| costs.is_object()) {
        out.push_str(&of_costs(costs));
    }
    for row in &rows {
        if let Some(why) = row["why"].as_str().filter(|why| !why.is_empty()) {
            out.push_str(&format!("{}: {}: {why}\n", plain(&row["name"]), plain(&row["state"])));
        }
    }
    let members = &cluster["members"];
    for why in elements(&members["refused"]) {
        out.push_str(&format!("does not count: {}\n", plain(why)));
    }
    let etcd = &members["etcd"];
    if etcd.is_object() {
        out.push('\n');
        out.push_str(&of_etcd(etcd, members["restored"] == true));
    }
    out
}

/// The thresholds, and where they come from.
fn of_thresholds(told: &Value) -> String {
    let [t_low, t_high, delay_ms] = ["t_low", "t_high", "delay_spread_ms"].map(|key| plain(&told[key]));
    let is_set = |key: &str| if told[key] == true { " (set)" } else { "" };
    let (low_is_set, high_is_set) = (is_set("t_low_is_set"), is_set("t_high_is_set"));
    let from = match (told["elasticity"].as_f64(), told["answers_per_s"].as_f64()) {
        _ if told["t_high_is_set"] == true => String::new(),
        (Some(elasticity), Some(answers)) => format!(
            ": 10 % more requests at the nodes brought {:.1} % more answers; a node answers {answers:.0} a second; answers may \
             differ by {delay_ms} ms",
            elasticity * 10.0
        ),
        _ if told["admission"] == false => ": as published, since `admission` is off".into(),
        _ => ": as published, since no request has had to wait".into(),
    };
    format!("t_low {t_low}{low_is_set}, t_high {t_high}{high_is_set}{from}\n")
}

/// What relaying and handing over cost, and what follows for `way = "auto"`.
fn of_costs(costs: &Value) -> String {
    let [relay, kb, hand_off] = ["relay_us", "relay_kb_ns", "hand_off_us"].map(|key| plain(&costs[key]));
    let delay = costs["hand_off_delay_us"].as_u64();
    let delay = delay.map_or_else(String::new, |delay| format!(", and takes {delay} µs"));
    let from = costs["handed_from_bytes"].as_u64();
    let from = from.map_or_else(|| "no size".into(), |bytes| format!("{} KB", bytes.div_ceil(1_024)));
    let with = costs["handed_with_request"].as_u64();
    let with = with.map_or_else(|| "no request".into(), |count| format!("request {count}"));
    format!(
        "\nrelaying costs {relay} µs and {kb} ns/KB, a hand-off {hand_off} µs at both hosts{delay}\n`auto` hands over from {from} \
         on a new connection, from {with} on a kept one with answers of usual size\n"
    )
}

/// The ways of a request, compared; empty if its connection cannot be handed over.
fn ways(ways: &Value) -> String {
    if !ways.is_object() {
        return String::new();
    }
    let [way, reason, relay, hand_off] =
        ["way", "reason", "relay_us", "hand_off_us"].map(|key| plain(&ways[key]));
    let bytes = ways["bytes"].as_u64();
    let bytes = bytes.map_or_else(String::new, |bytes| format!(" about {} KB", bytes.div_ceil(1_024)));
    format!(
        "  with `way = \"auto\"`, on a new connection: {way}, {reason}: relaying{bytes} {relay} µs, a hand-off {hand_off} µs\n"
    )
}

/// Such choices in percent of all. Nothing yet: a dash.
fn share(some: u64, all: Option<&serde_json::Map<String, Value>>) -> String {
    let all: u64 = all.into_iter().flatten().filter_map(|(_, count)| count.as_u64()).sum();
    match all {
        0 => "-".into(),
        all => format!("{} %", some * 100 / all),
    }
}

fn of_etcd(etcd: &Value, is_restored: bool) -> String {
    let mut out = match etcd["reachable"] == true {
        true => {
            format!("etcd answers at {}, revision {}\n", plain(&etcd["endpoint"]), plain(&etcd["revision"]))
        }
        false => "etcd does not answer\n".into(),
    };
    if let Some(error) = etcd["error"].as_str() {
        out.push_str(&format!("  {error}\n"));
    }
    if let Some(since) = etcd["stale_since"].as_str() {
        let age = plain(&etcd["age_seconds"]);
        let of = if is_restored { "from the state file, " } else { "" };
        out.push_str(&format!("  the view is {of}stale since {since}, {age} s ago\n"));
    }
    match (etcd["registered_as"].as_str(), etcd["registration_error"].as_str()) {
        (Some(name), None) => out.push_str(&format!("  this host is registered as {name}\n")),
        (Some(name), Some(why)) => out.push_str(&format!("  this host is not registered as {name}: {why}\n")),
        (None, _) => {}
    }
    for one in elements(&etcd["skipped"]) {
        out.push_str(&format!("  {} does not count: {}\n", plain(&one["key"]), plain(&one["why"])));
    }
    if let Some(losses) = etcd["losses"].as_u64().filter(|losses| *losses > 0) {
        out.push_str(&format!("  it has lost data, or was another one: {}\n", counted(losses, "time")));
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_node_tells_how_often_it_had_the_target_and_what_it_was_handed() {
        let node = json!({
            "name": "a", "to": "http://a", "source": "config", "state": "up", "weight": 1, "load": 2, "requests": 9,
            "failures": 0, "why": "", "choices": { "mapped": 6, "moved": 2, "first-assignment": 1 },
            "ways": { "handoff": 7, "relay": 2 },
        });
        let idle = json!({ "name": "b", "choices": {}, "ways": {} });
        let said = nodes(&json!({ "policy": "lard-h", "nodes": [node, idle], "members": null }));
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let line = |name: &str| words(said.lines().find(|line| line.trim_start().starts_with(name)).unwrap());
        assert_eq!(line("a ")[7..], ["0", "2", "66", "%", "7", "0"], "{said}");
        assert!(line("b ").ends_with(&["-", "0", "0"].map(str::to_owned)), "{said}");
        assert!(!said.contains("relaying costs"), "nothing was measured: {said}");
    }

    #[test]
    fn costs_are_shown_with_what_follows() {
        let costs = json!({
            "relay_us": 60, "relay_kb_ns": 700, "hand_off_us": 200, "hand_off_delay_us": 480, "handed_from_bytes": 204_800,
            "handed_with_request": 4,
        });
        let node = json!({ "name": "a", "choices": {}, "ways": {}, "costs": costs });
        let said = nodes(
            &json!({ "policy": "lard-h", "nodes": [{ "name": "b", "costs": null }, node], "members": null }),
        );
        let follows = "relaying costs 60 µs and 700 ns/KB, a hand-off 200 µs at both hosts, and takes 480 µs\n`auto` hands over \
                       from 200 KB on a new connection, from request 4 on a kept one with answers of usual size\n";
        assert!(said.ends_with(follows), "{said}");
        let never = json!({ "relay_us": 1, "relay_kb_ns": 1, "hand_off_us": 9 });
        assert!(of_costs(&never).contains("from no size on a new connection, from no request on"));
    }
}
