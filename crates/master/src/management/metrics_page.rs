//! The metrics page: Prometheus text, version 0.0.4.

use std::fmt::Write as _;

use baton_telemetry::metrics::{Counters, Kind, Metric};

use super::exposition::{begin, escaped};

/// Metrics of the master itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerMetrics {
    /// When the server was started, in seconds since 1970.
    pub(crate) start_time_seconds: u64,
    /// Workers that serve now.
    pub(crate) workers_serving: u64,
    /// Workers that were started after another one had died.
    pub(crate) worker_restarts: u64,
    /// Workers that the watchdog killed.
    pub(crate) workers_killed: u64,
    /// Reloads that took effect.
    pub(crate) reloads_done: u64,
    /// Reloads that were refused.
    pub(crate) reloads_refused: u64,
}

/// The page: the sums over all workers, and the master's own metrics. The sums include workers that have died, so that
/// no total decreases.
pub(crate) fn page(
    workers: &[Counters],
    metrics: &ServerMetrics,
    certificates: &[(String, &'static str, i64)],
) -> String {
    let mut page = String::with_capacity(4096);
    let mut family = "";
    for &metric in Metric::ALL {
        if metric.name() != family {
            family = metric.name();
            begin(&mut page, family, word(metric.kind()), metric.help());
        }
        let sum = workers.iter().fold(0_u64, |sum, worker| sum.wrapping_add(worker.get(metric)));
        sample(&mut page, family, metric.label(), sum);
    }
    let own = [
        (
            "baton_start_time_seconds",
            Kind::Gauge,
            "When the server was started, in seconds since 1970.",
            metrics.start_time_seconds,
        ),
        ("baton_workers_serving", Kind::Gauge, "Worker processes that serve now.", metrics.workers_serving),
        (
            "baton_worker_restarts_total",
            Kind::Counter,
            "Workers started in place of one that died.",
            metrics.worker_restarts,
        ),
        (
            "baton_workers_killed_total",
            Kind::Counter,
            "Workers killed because one of their loops stood still.",
            metrics.workers_killed,
        ),
    ];
    for (name, kind, help, value) in own {
        begin(&mut page, name, word(kind), help);
        sample(&mut page, name, None, value);
    }
    begin(&mut page, "baton_reloads_total", "counter", "Reloads by how they ended.");
    sample(&mut page, "baton_reloads_total", Some(("outcome", "done")), metrics.reloads_done);
    sample(&mut page, "baton_reloads_total", Some(("outcome", "refused")), metrics.reloads_refused);
    if !certificates.is_empty() {
        let name = "baton_certificate_days_left";
        begin(
            &mut page,
            name,
            "gauge",
            "Whole days until a site's certificate ends, by the key's algorithm.",
        );
        for (site, key, days) in certificates {
            let site = escaped(site);
            let _ = writeln!(page, "{name}{{site=\"{site}\",key=\"{key}\"}} {days}");
        }
    }
    begin(&mut page, "baton_build_info", "gauge", "The version that runs, as a label.");
    sample(&mut page, "baton_build_info", Some(("version", env!("CARGO_PKG_VERSION"))), 1);
    page
}

const fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
    }
}

/// A sample whose label and value are words of this program: none needs escaping.
fn sample(page: &mut String, name: &str, label: Option<(&str, &str)>, value: u64) {
    let _ = match label {
        Some((label, word)) => writeln!(page, "{name}{{{label}=\"{word}\"}} {value}"),
        None => writeln!(page, "{name} {value}"),
    };
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn counters_are_summed_and_each_family_is_described_once() {
        let workers = Counters::allocate(2).unwrap();
        workers[0].add(Metric::Responses2xx, 5);
        workers[1].add(Metric::Responses2xx, 7);
        workers[1].add(Metric::ConnectionsOpen, 1);
        let page = page(
            &workers,
            &ServerMetrics { worker_restarts: 3, ..ServerMetrics::default() },
            &[("a\"b".into(), "rsa", -3)],
        );
        let lines: Vec<&str> = page.lines().collect();
        assert!(lines.contains(&"baton_responses_total{class=\"2xx\"} 12"), "{page}");
        assert!(lines.contains(&"baton_connections_open 1"), "{page}");
        assert!(lines.contains(&"baton_worker_restarts_total 3"), "{page}");
        assert!(lines.contains(&r#"baton_certificate_days_left{site="a\"b",key="rsa"} -3"#), "{page}");
        let described: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        assert_eq!(described.len(), described.iter().collect::<HashSet<_>>().len(), "{page}");
        for sample in lines.iter().filter(|line| !line.starts_with('#')) {
            let (name, value) = sample.rsplit_once(' ').unwrap();
            let family = name.split('{').next().unwrap();
            assert!(described.iter().any(|line| line.split(' ').next() == Some(family)), "{sample}");
            value.parse::<i64>().unwrap();
        }
    }
}
