//! The part of the metrics page about sites, applications, origins and processes. Labels are bounded: names are those of the
//! configuration, codes those of a list.

use std::fmt::Write as _;

use baton_telemetry::figures::{BOUNDS_US, CODES};

use super::exposition::{begin, escaped};
use crate::figures::{AllFigures, NamedFigures, OTHER, ProcessUsage};

/// The families.
pub(crate) fn page(figures: &AllFigures, taken: &ProcessUsage, start_time_seconds: u64) -> String {
    let mut page = String::new();
    family(&mut page, &HTTP, &figures.sites);
    family(&mut page, &UPSTREAM, &figures.upstreams);
    processes(&mut page, taken, start_time_seconds);
    page
}

/// The names of what is counted of a kind of subjects.
struct Names {
    prefix: &'static str,
    label: &'static str,
    of: &'static str,
}

const HTTP: Names = Names { prefix: "baton_http", label: "site", of: "of a site" };
const UPSTREAM: Names =
    Names { prefix: "baton_upstream", label: "upstream", of: "that an application or origin had" };

fn family(page: &mut String, names: &Names, all: &[NamedFigures]) {
    if all.is_empty() {
        return;
    }
    let Names { prefix, label, of } = names;
    let labelled: Vec<_> =
        all.iter().map(|one| (format!("{label}=\"{}\"", escaped(&one.name)), &one.figures)).collect();
    let requests = format!("{prefix}_requests_total");
    begin(page, &requests, "counter", &format!("Requests {of}, by status."));
    for (label, figures) in &labelled {
        let codes = CODES.iter().map(ToString::to_string).chain([OTHER.to_owned()]).zip(figures.codes);
        for (code, count) in codes.filter(|(_, count)| *count > 0) {
            let _ = writeln!(page, "{requests}{{{label},code=\"{code}\"}} {count}");
        }
    }
    let duration = format!("{prefix}_request_duration_seconds");
    begin(page, &duration, "histogram", &format!("Time of requests {of}."));
    for (label, figures) in &labelled {
        let mut sum = 0;
        let bounds = BOUNDS_US.iter().map(|us| seconds(*us)).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(figures.buckets) {
            sum += count;
            let _ = writeln!(page, "{duration}_bucket{{{label},le=\"{bound}\"}} {sum}");
        }
        let _ = writeln!(page, "{duration}_sum{{{label}}} {}", seconds(figures.sum_us));
        let _ = writeln!(page, "{duration}_count{{{label}}} {sum}");
    }
    let in_flight = format!("{prefix}_requests_in_flight");
    begin(page, &in_flight, "gauge", &format!("Requests {of} that are under way."));
    for (label, figures) in &labelled {
        let _ = writeln!(page, "{in_flight}{{{label}}} {}", figures.in_flight);
    }
    let bytes = format!("{prefix}_response_body_bytes_total");
    begin(page, &bytes, "counter", &format!("Bytes of bodies that were sent for requests {of}."));
    for (label, figures) in &labelled {
        let _ = writeln!(page, "{bytes}{{{label}}} {}", figures.body_bytes);
    }
}

/// The families that every exporter has, by their usual names: of the master and its workers together.
fn processes(page: &mut String, taken: &ProcessUsage, start_time_seconds: u64) {
    let ProcessUsage { cpu_seconds, resident_bytes, virtual_bytes, open_fds, threads } = taken;
    for (name, kind, help, value) in [
        (
            "process_cpu_seconds_total",
            "counter",
            "CPU time of the master and its workers.",
            cpu_seconds.to_string(),
        ),
        (
            "process_resident_memory_bytes",
            "gauge",
            "Memory of these processes; what they share counts for each.",
            resident_bytes.to_string(),
        ),
        (
            "process_virtual_memory_bytes",
            "gauge",
            "Address space of these processes.",
            virtual_bytes.to_string(),
        ),
        ("process_open_fds", "gauge", "Descriptors that are open in these processes.", open_fds.to_string()),
        ("process_threads", "gauge", "Threads of these processes.", threads.to_string()),
        (
            "process_start_time_seconds",
            "gauge",
            "When the server was started, in seconds since 1970.",
            start_time_seconds.to_string(),
        ),
    ] {
        begin(page, name, kind, help);
        let _ = writeln!(page, "{name} {value}");
    }
}

/// Microseconds in seconds, exactly.
fn seconds(us: u64) -> String {
    let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use baton_telemetry::figures::{FigureTable, FigureTally, Subject};

    use super::*;

    #[test]
    fn buckets_add_up_to_the_count() {
        let table = FigureTable::allocate(1).unwrap();
        let row = table.row(Subject::Site("a\"b"));
        drop(FigureTally::new(table, 0));
        let figures = NamedFigures { name: "a\"b".into(), figures: table.sum(row) };
        let mut all = AllFigures { sites: vec![figures], upstreams: Vec::new() };
        all.sites[0].figures.buckets[0] = 2;
        all.sites[0].figures.buckets[17] = 1;
        all.sites[0].figures.sum_us = 12_345_600;
        all.sites[0].figures.codes[1] = 3;
        let taken = ProcessUsage { cpu_seconds: 1.5, ..ProcessUsage::default() };
        let page = page(&all, &taken, 7);
        for line in [
            r#"baton_http_requests_total{site="a\"b",code="200"} 3"#,
            r#"baton_http_request_duration_seconds_bucket{site="a\"b",le="0.00005"} 2"#,
            r#"baton_http_request_duration_seconds_bucket{site="a\"b",le="10"} 2"#,
            r#"baton_http_request_duration_seconds_bucket{site="a\"b",le="+Inf"} 3"#,
            r#"baton_http_request_duration_seconds_sum{site="a\"b"} 12.3456"#,
            r#"baton_http_request_duration_seconds_count{site="a\"b"} 3"#,
            "process_cpu_seconds_total 1.5",
            "process_start_time_seconds 7",
        ] {
            assert!(page.lines().any(|one| one == line), "{line} in\n{page}");
        }
        assert!(!page.contains("upstream"), "{page}");
    }
}
