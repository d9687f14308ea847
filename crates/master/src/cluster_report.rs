//! The nodes of the cluster, for the status: what the configuration, etcd and the table of origins know of each.

use baton_config::{Cluster, ClusterNode, Config, source_word};
use baton_report::counted;
use baton_upstream::{CHOICE_LABELS, FitSeen, OriginRecord, Way};
use serde_json::{Map, Value, json};

use super::known_drain::{KnownDrain, LeftOf};
use super::members::Members;
use super::origins::{Figures, Origins};

/// The cluster; `None`: no node is asked.
pub(super) fn report(
    config: &Config,
    members: &Members,
    drains: &[KnownDrain],
    origins: &Origins,
) -> Option<Value> {
    if !config.asks_nodes() {
        return None;
    }
    let cluster = &config.cluster;
    let figures = origins.figures(config);
    let nodes = cluster.nodes.iter().filter(|node| !node.each_address);
    let mut fit = None;
    let nodes = nodes.map(|one| {
        let name = one.name();
        let known = figures.iter().find(|known| known.node.as_deref() == Some(&*name));
        let record = origins.node(config, &name);
        let drain = drains.iter().find(|drain| drain.word.is_drained && drain.word.node == name);
        let mut told = node(one, members, drain, known);
        told["connections"] = json!(record.as_ref().map(OriginRecord::connections_at_node));
        told["costs"] = json!(record.as_ref().and_then(costs));
        fit = fit.or(record.and_then(|record| record.fit()));
        told
    });
    let nodes = nodes.collect::<Vec<_>>();
    Some(json!({
        "policy": cluster.policy.to_string(),
        "thresholds": thresholds(cluster, fit),
        "nodes": nodes,
        "members": members.report(),
    }))
}

/// The thresholds: those of a worker that has distributed requests, else those with which one begins.
fn thresholds(cluster: &Cluster, fit: Option<FitSeen>) -> Value {
    let (t_low, t_high) = cluster.thresholds();
    let begun = FitSeen { t_low: t_low as u32, t_high: t_high as u32, seen: None };
    let fit = fit.unwrap_or(begun);
    json!({
        "t_low": fit.t_low,
        "t_high": fit.t_high,
        "t_low_is_set": cluster.t_low.is_some(),
        "t_high_is_set": cluster.t_high.is_some(),
        "admission": cluster.admission,
        "delay_spread_ms": cluster.delay_spread_ms,
        "elasticity": fit.seen.map(|seen| seen.elasticity_permille as f64 / 1_000.0),
        "answers_per_s": fit.seen.map(|seen| seen.answers_per_1000_s as f64 / 1_000.0),
    })
}

/// What the ways to a node cost, as the worker has measured that used it last; `None`: nothing was measured.
fn costs(record: &OriginRecord) -> Option<Value> {
    let prices = record.way_prices()?;
    let seen = record.hand_off_seen();
    Some(json!({
        "relay_us": prices.relay_ns / 1_000,
        "relay_kb_ns": prices.kb_ns,
        "hand_off_us": prices.hand_off_ns / 1_000,
        "hand_off_delay_us": Some(seen.delay_us).filter(|delay_us| *delay_us > 0),
        "handed_from_bytes": prices.from_bytes,
        "handed_with_request": prices.with_request,
    }))
}

fn drain_words(KnownDrain { word, counts }: &KnownDrain) -> String {
    let left = match (word.reports, counts) {
        (0, _) => "it has not heard of it".into(),
        (_, LeftOf::Connections) => format!("{} of front-ends left", counted(word.left, "connection")),
        (_, LeftOf::Requests) => format!("{} left", counted(word.left, "request")),
    };
    format!("by `baton ctl cluster drain`: {left}")
}

fn node(node: &ClusterNode, members: &Members, drain: Option<&KnownDrain>, known: Option<&Figures>) -> Value {
    let name = node.name();
    let member = members.member(&name);
    let (state, why) = known.map_or(("unknown", String::new()), |one| (one.state.word(), one.state.why()));
    let (state, why) = match (drain, member) {
        (_, Some(member)) if member.leaving => ("leaving", "it said so".into()),
        (Some(drain), _) => ("drained", drain_words(drain)),
        (_, Some(member)) if member.drained => ("drained", "by `baton ctl cluster drain`".into()),
        (_, Some(member)) if member.held => {
            (state, format!("etcd does not have it, nor others: it counts nevertheless {why}"))
        }
        _ => (state, why),
    };
    let counts = known.map(|one| one.counts).unwrap_or_default();
    let choices = CHOICE_LABELS.into_iter().zip(counts.choices).filter(|(_, count)| *count > 0);
    let choices: Map<_, _> = choices.map(|(label, count)| (label.to_owned(), count.into())).collect();
    let ways = Way::ALL.into_iter().zip(counts.ways).filter(|(_, count)| *count > 0);
    let ways: Map<_, _> = ways.map(|(way, count)| (way.word().to_owned(), count.into())).collect();
    json!({
        "name": name,
        "to": node.to.to_string(),
        "source": source_word(member.map(|member| member.source)),
        "state": state,
        "why": why.trim(),
        "held": member.is_some_and(|member| member.held),
        "weight": node.weight,
        "load": counts.in_flight,
        "requests": counts.requests,
        "failures": counts.failures.iter().sum::<u64>(),
        "choices": choices,
        "ways": ways,
    })
}
