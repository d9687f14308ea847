//! The part of the metrics page about origins. Its labels are bounded by the configuration.

use std::fmt::Write as _;

use baton_upstream::{CHOICE_LABELS, FAILURE_LABELS, Way};

use super::exposition::{begin, escaped};
use crate::origins::Figures;

/// The families, if there are origins.
pub(crate) fn page(origins: &[Figures]) -> String {
    let mut page = String::new();
    if origins.is_empty() {
        return page;
    }
    let labelled: Vec<_> = origins.iter().map(|one| (labels(one), one)).collect();
    let mut family = |name: &str, kind: &str, help: &str, value: &dyn Fn(&Figures) -> u64| {
        begin(&mut page, name, kind, help);
        for (labels, one) in &labelled {
            let _ = writeln!(page, "{name}{{{labels}}} {}", value(one));
        }
    };
    family(
        "baton_origin_up",
        "gauge",
        "Whether an origin gets requests: 0 while it is ejected, drained, or fails its checks.",
        &|one| u64::from(one.state.serves()),
    );
    family("baton_origin_requests_total", "counter", "Requests for which an origin was chosen.", &|one| {
        one.counts.requests
    });
    family(
        "baton_origin_requests_in_flight",
        "gauge",
        "Requests that are under way at an origin, or wait for a connection to it; tunnels included.",
        &|one| one.counts.in_flight,
    );
    family(
        "baton_origin_ejections_total",
        "counter",
        "Times that an origin among several was ejected because of its failures.",
        &|one| one.counts.ejections,
    );
    begin(
        &mut page,
        FAILURES,
        "counter",
        "Requests that have failed at an origin, by the reason in the log.",
    );
    for (labels, one) in &labelled {
        for (reason, count) in FAILURE_LABELS.into_iter().zip(one.counts.failures) {
            let _ = writeln!(page, "{FAILURES}{{{labels},reason=\"{reason}\"}} {count}");
        }
    }
    begin(&mut page, RESPONSES, "summary", "Time from the choice of an origin to the head of its response.");
    for (labels, one) in &labelled {
        let (seconds, milliseconds) = (one.counts.response_ms / 1_000, one.counts.response_ms % 1_000);
        let _ = writeln!(page, "{RESPONSES}_sum{{{labels}}} {seconds}.{milliseconds:03}");
        let _ = writeln!(page, "{RESPONSES}_count{{{labels}}} {}", one.counts.responses);
    }
    add_nodes(&mut page, origins);
    page
}

/// What is counted of nodes of the cluster alone.
fn add_nodes(page: &mut String, origins: &[Figures]) {
    let nodes = || origins.iter().filter_map(|one| Some((escaped(one.node.as_ref()?), &one.counts)));
    if nodes().next().is_none() {
        return;
    }
    begin(page, WAYS, "counter", "Requests that got to a node of the cluster, by their way.");
    for (node, counts) in nodes() {
        for (way, count) in Way::ALL.into_iter().zip(counts.ways) {
            let _ = writeln!(page, "{WAYS}{{node=\"{node}\",way=\"{}\"}} {count}", way.word());
        }
    }
    begin(page, CHOICES, "counter", "Choices of a node of the cluster, by the reason in the log.");
    for (node, counts) in nodes() {
        for (why, count) in CHOICE_LABELS.into_iter().zip(counts.choices) {
            let _ = writeln!(page, "{CHOICES}{{node=\"{node}\",why=\"{why}\"}} {count}");
        }
    }
}

const FAILURES: &str = "baton_origin_failures_total";
const WAYS: &str = "baton_cluster_requests_total";
const CHOICES: &str = "baton_cluster_choices_total";
const RESPONSES: &str = "baton_origin_response_seconds";

fn labels(one: &Figures) -> String {
    let [site, route, origin] = [&one.name.site, &one.name.route, &one.name.origin].map(|text| escaped(text));
    format!("site=\"{site}\",route=\"{route}\",origin=\"{origin}\"")
}

#[cfg(test)]
mod tests {
    use baton_upstream::{OriginCounts, OriginName, OriginState};

    use super::*;

    #[test]
    fn each_origin_has_its_lines() {
        let name = OriginName { site: "a\"b".into(), route: "/".into(), origin: "http://h".into() };
        let mut counts =
            OriginCounts { requests: 3, responses: 2, response_ms: 1_042, ..OriginCounts::default() };
        counts.failures[0] = 1;
        counts.choices[1] = 4;
        let node = Some("one".to_owned());
        let page = page(&[Figures { name, node, state: OriginState::Drained, counts }]);
        let labels = r#"site="a\"b",route="/",origin="http://h""#;
        for line in [
            format!("baton_origin_up{{{labels}}} 0"),
            format!("baton_origin_requests_total{{{labels}}} 3"),
            format!("baton_origin_failures_total{{{labels},reason=\"no-connection\"}} 1"),
            "baton_cluster_choices_total{node=\"one\",why=\"mapped\"} 4".to_owned(),
            format!("baton_origin_response_seconds_sum{{{labels}}} 1.042"),
            format!("baton_origin_response_seconds_count{{{labels}}} 2"),
        ] {
            assert!(page.lines().any(|one| one == line), "{line} in\n{page}");
        }
    }
}
