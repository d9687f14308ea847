//! The cells summed up, as Markdown.

use std::fmt::Write;

use super::workload::Workload;
use crate::comparison::{Cell, Figures, Sum, Task, distinct};
use crate::markdown::{begin_table, failed_row, number, row, spread};

/// A summary (CPU time per request as a ratio to the reference), then a table for each workload.
pub(super) fn markdown(cells: &[Cell<Workload>], machine: &str) -> String {
    let workloads = distinct(cells.iter().map(|cell| cell.task));
    let servers = distinct(cells.iter().map(|cell| cell.server.as_str()));
    // Servers are measured in a fixed order in the first round: its first one is the reference.
    let Some(reference) = servers.first().copied() else { return "Nothing was measured.\n".to_owned() };

    let mut text = format!("{machine}\n\n## CPU time per request, ratio to {reference} (less is better)\n\n");
    let titles: Vec<&str> = workloads.iter().map(|workload| workload.title()).collect();
    begin_table(&mut text, "server", &titles);
    for server in &servers {
        let ratios: Vec<String> = workloads
            .iter()
            .map(|workload| match Sum::of(cells, *workload, server) {
                Sum::Absent => String::new(),
                Sum::Failed(_) => "failed".to_owned(),
                Sum::Measured(sum) => number(sum.ratio_to(&Sum::of(cells, *workload, reference), CPU), 2),
            })
            .collect();
        row(&mut text, server, &ratios);
    }
    for workload in workloads {
        detail(&mut text, cells, workload, &servers, reference);
    }
    text
}

fn detail(
    text: &mut String,
    cells: &[Cell<Workload>],
    workload: Workload,
    servers: &[&str],
    reference: &str,
) {
    let _ = writeln!(text, "\n## {workload}\n");
    let mut titles = vec![
        "CPU us/request",
        "ratio",
        "requests/s",
        "MB/s",
        "server CPU",
        "p50 us",
        "p99 us",
        "spread",
        "rounds",
    ];
    if workload.idle_connections() > 0 {
        titles.push("bytes/idle connection");
    }
    begin_table(text, "server", &titles);
    for server in servers {
        match Sum::of(cells, workload, server) {
            Sum::Absent => {}
            Sum::Failed(why) => failed_row(text, server, why),
            Sum::Measured(sum) => {
                let mut fields = vec![
                    number(sum.median(CPU), 2),
                    number(sum.ratio_to(&Sum::of(cells, workload, reference), CPU), 2),
                    number(sum.median(|figures| figures.requests_per_second), 0),
                    number(sum.median(|figures| figures.megabytes_per_second), 0),
                    number(sum.median(|figures| figures.server_utilisation), 2),
                    number(sum.median(|figures| figures.p50_us), 0),
                    number(sum.median(|figures| figures.p99_us), 0),
                    spread(&sum.all(CPU)),
                    sum.rounds(),
                ];
                if workload.idle_connections() > 0 {
                    let bytes: Vec<f64> =
                        sum.figures.iter().filter_map(|(_, f)| f.idle_connection_bytes).collect();
                    // Later rounds find the memory that the first one made the server take.
                    fields.push(number(bytes.into_iter().reduce(f64::max), 0));
                }
                row(text, server, &fields);
            }
        }
    }
}

/// What servers are compared by.
const CPU: fn(&Figures) -> f64 = |figures| figures.cpu_us_per_request;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Outcome;

    fn measured(server: &str, round: usize, cpu: f64, disturbed: bool) -> Cell<Workload> {
        let figures = Figures {
            requests_per_second: 1e6 / cpu,
            megabytes_per_second: 1.0,
            cpu_us_per_request: cpu,
            application_us_per_request: None,
            server_utilisation: 1.0,
            client_utilisation: 1.0,
            cpu_busy: 1.0,
            p50_us: 1.0,
            p99_us: 2.0,
            idle_connection_bytes: None,
            disturbed,
        };
        Cell { task: Workload::Small, server: server.into(), round, outcome: Outcome::Measured(figures) }
    }

    #[test]
    fn ratios_are_taken_within_rounds_and_disturbed_rounds_are_dropped() {
        let cells = [
            measured("nginx", 0, 10.0, false),
            measured("baton auto", 0, 7.0, false),
            measured("nginx", 1, 20.0, false),
            measured("baton auto", 1, 14.0, false),
            measured("nginx", 2, 10.0, false),
            measured("baton auto", 2, 90.0, true),
        ];
        let text = markdown(&cells, "a machine");
        assert!(text.contains("| nginx | 1.00 |"), "{text}");
        assert!(text.contains("| baton auto | 0.70 |"), "{text}");
        assert!(text.contains("2, 1 disturbed"), "{text}");
    }

    #[test]
    fn one_failed_round_fails_the_server() {
        let mut cells = vec![measured("nginx", 0, 10.0, false), measured("baton auto", 0, 7.0, false)];
        cells.push(Cell {
            task: Workload::Small,
            server: "baton auto".into(),
            round: 1,
            outcome: Outcome::Failed("3 requests failed: status 500 for /1k.html".into()),
        });
        let text = markdown(&cells, "a machine");
        assert!(text.contains("| baton auto | failed |"), "{text}");
        assert!(
            text.contains("| baton auto | failed: 3 requests failed: status 500 for /1k.html |"),
            "{text}"
        );
    }

    #[test]
    fn without_a_reference_there_is_no_ratio_but_there_are_figures() {
        let mut lost = measured("nginx", 0, 10.0, false);
        lost.outcome = Outcome::Failed("gone".into());
        let text = markdown(&[lost, measured("baton auto", 0, 7.0, false)], "a machine");
        assert!(text.contains("| baton auto | – |"), "{text}");
        assert!(text.contains("| baton auto | 7.00 | – |"), "{text}");
    }
}
