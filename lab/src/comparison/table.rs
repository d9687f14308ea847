//! The cells summed up, as Markdown.

use std::fmt::{Display, Write};

use super::cell::{Cell, Figures};
use super::sum::{Sum, distinct};
use crate::markdown::{begin_table, failed_row, number, row, spread};

/// A summary (CPU time per request as a ratio to the reference), then a table for each task.
pub(crate) fn markdown<T: Copy + PartialEq + Display>(cells: &[Cell<T>], machine: &str) -> String {
    let tasks = distinct(cells.iter().map(|cell| cell.task));
    let servers = distinct(cells.iter().map(|cell| cell.server.as_str()));
    // Servers are measured in a fixed order in the first round: its first one is the reference.
    let Some(reference) = servers.first().copied() else { return "Nothing was measured.\n".to_owned() };

    let mut text = format!("{machine}\n\n## CPU time per request, ratio to {reference} (less is better)\n\n");
    let titles: Vec<String> = tasks.iter().map(ToString::to_string).collect();
    begin_table(&mut text, "server", &titles);
    for server in &servers {
        let ratios: Vec<String> = tasks
            .iter()
            .map(|task| match Sum::of(cells, *task, server) {
                Sum::Absent => String::new(),
                Sum::Failed(_) => "failed".to_owned(),
                Sum::Measured(sum) => number(sum.ratio_to(&Sum::of(cells, *task, reference), CPU), 2),
            })
            .collect();
        row(&mut text, server, &ratios);
    }
    for task in tasks {
        detail(&mut text, cells, task, &servers, reference);
    }
    text
}

fn detail<T: Copy + PartialEq + Display>(
    text: &mut String,
    cells: &[Cell<T>],
    task: T,
    servers: &[&str],
    reference: &str,
) {
    let _ = writeln!(text, "\n## {task}\n");
    let sums: Vec<(&str, Sum<'_>)> =
        servers.iter().map(|server| (*server, Sum::of(cells, task, server))).collect();
    let known = |field: fn(&Figures) -> Option<f64>| {
        sums.iter().any(|(_, sum)| matches!(sum, Sum::Measured(sum) if sum.median(field).is_some()))
    };
    let (has_latency, has_memory) = (known(|figures| figures.p50_us), known(IDLE_BYTES));
    let mut titles = vec!["CPU us/request", "ratio", "requests/s", "MB/s", "server CPU"];
    if has_latency {
        titles.extend(["p50 us", "p99 us"]);
    }
    titles.extend(["spread", "rounds"]);
    if has_memory {
        titles.push("bytes/idle connection");
    }
    begin_table(text, "server", &titles);
    for (server, sum) in &sums {
        match sum {
            Sum::Absent => {}
            Sum::Failed(why) => failed_row(text, server, why),
            Sum::Measured(sum) => {
                let mut fields = vec![
                    number(sum.median(CPU), 2),
                    number(sum.ratio_to(&Sum::of(cells, task, reference), CPU), 2),
                    number(sum.median(|figures| figures.requests_per_second), 0),
                    number(sum.median(|figures| figures.megabytes_per_second), 0),
                    number(sum.median(|figures| figures.server_utilisation), 2),
                ];
                if has_latency {
                    fields.push(number(sum.median(|figures| figures.p50_us), 0));
                    fields.push(number(sum.median(|figures| figures.p99_us), 0));
                }
                fields.extend([spread(&sum.all(CPU)), sum.rounds()]);
                if has_memory {
                    // Later rounds find the memory that the first one made the server take.
                    fields.push(number(sum.all(IDLE_BYTES).into_iter().reduce(f64::max), 0));
                }
                row(text, server, &fields);
            }
        }
    }
}

/// What servers are compared by.
const CPU: fn(&Figures) -> f64 = |figures| figures.cpu_us_per_request;
const IDLE_BYTES: fn(&Figures) -> Option<f64> = |figures| figures.idle_connection_bytes;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Outcome;

    fn measured(server: &str, round: usize, cpu: f64, disturbed: bool) -> Cell<&'static str> {
        let figures = Figures {
            requests_per_second: 1e6 / cpu,
            megabytes_per_second: 1.0,
            cpu_us_per_request: cpu,
            application_us_per_request: None,
            server_utilisation: 1.0,
            client_utilisation: 1.0,
            cpu_busy: 1.0,
            p50_us: Some(1.0),
            p99_us: Some(2.0),
            idle_connection_bytes: None,
            disturbed,
        };
        Cell { task: "1 KB", server: server.into(), round, outcome: Outcome::Measured(figures) }
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
            task: "1 KB",
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
