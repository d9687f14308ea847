//! The cells summed up, as Markdown.

use std::fmt::Write;

use super::cell::{Cell, Figures, Outcome};
use super::workload::Workload;
use crate::stats::{median, paired_ratio, spread};

/// A summary (CPU time per request as a ratio to the reference), then a table for each workload.
pub(super) fn markdown(cells: &[Cell], machine: &str) -> String {
    let workloads = distinct(cells.iter().map(|cell| cell.workload));
    let servers = distinct(cells.iter().map(|cell| cell.server.as_str()));
    // Servers are measured in a fixed order in the first round: its first one is the reference.
    let Some(reference) = servers.first().copied() else { return "Nothing was measured.\n".to_owned() };

    let mut text = format!("{machine}\n\n## CPU time per request, ratio to {reference} (less is better)\n\n");
    let titles: Vec<&str> = workloads.iter().map(|workload| workload.title()).collect();
    row(&mut text, "server", &titles);
    row(&mut text, "---", &vec!["---:"; titles.len()]);
    for server in &servers {
        let ratios: Vec<String> = workloads
            .iter()
            .map(|workload| match Sum::of(cells, *workload, server, reference) {
                Sum::Absent => String::new(),
                Sum::Failed(_) => "failed".to_owned(),
                Sum::Measured(sum) => number(sum.cpu_ratio, 2),
            })
            .collect();
        row(&mut text, server, &ratios);
    }
    for workload in workloads {
        detail(&mut text, cells, workload, &servers, reference);
    }
    text
}

fn detail(text: &mut String, cells: &[Cell], workload: Workload, servers: &[&str], reference: &str) {
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
    row(text, "server", &titles);
    row(text, "---", &vec!["---:"; titles.len()]);
    for server in servers {
        match Sum::of(cells, workload, server, reference) {
            Sum::Absent => {}
            Sum::Failed(why) => {
                let _ = writeln!(text, "| {server} | failed: {why} |");
            }
            Sum::Measured(sum) => {
                let mut fields = vec![
                    number(sum.median(|figures| figures.cpu_us_per_request), 2),
                    number(sum.cpu_ratio, 2),
                    number(sum.median(|figures| figures.requests_per_second), 0),
                    number(sum.median(|figures| figures.megabytes_per_second), 0),
                    number(sum.median(|figures| figures.server_utilisation), 2),
                    number(sum.median(|figures| figures.p50_us), 0),
                    number(sum.median(|figures| figures.p99_us), 0),
                    number(
                        spread(&sum.all(|figures| figures.cpu_us_per_request)).map(|spread| spread * 100.0),
                        0,
                    ) + " %",
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

/// The rounds of one server under one workload.
enum Sum<'a> {
    Absent,
    /// One wrong answer is enough.
    Failed(&'a str),
    Measured(Measured<'a>),
}

struct Measured<'a> {
    /// By round; without the disturbed ones, unless all are.
    figures: Vec<(usize, &'a Figures)>,
    disturbed: usize,
    cpu_ratio: Option<f64>,
}

impl<'a> Sum<'a> {
    fn of(cells: &'a [Cell], workload: Workload, server: &str, reference: &str) -> Self {
        let mut all = Vec::new();
        for cell in cells.iter().filter(|cell| cell.workload == workload && cell.server == server) {
            match &cell.outcome {
                Outcome::Failed(why) => return Self::Failed(why),
                Outcome::Measured(figures) => all.push((cell.round, figures)),
            }
        }
        if all.is_empty() {
            return Self::Absent;
        }
        let disturbed = all.iter().filter(|(_, figures)| figures.disturbed).count();
        if disturbed < all.len() {
            all.retain(|(_, figures)| !figures.disturbed);
        }
        let mut measured = Measured { figures: all, disturbed, cpu_ratio: Some(1.0) };
        if server != reference {
            measured.cpu_ratio = match Self::of(cells, workload, reference, reference) {
                Self::Measured(base) => paired_ratio(&measured.cpu_by_round(), &base.cpu_by_round()),
                _ => None,
            };
        }
        Self::Measured(measured)
    }
}

impl Measured<'_> {
    fn all(&self, field: impl Fn(&Figures) -> f64) -> Vec<f64> {
        self.figures.iter().map(|(_, figures)| field(figures)).collect()
    }

    fn median(&self, field: impl Fn(&Figures) -> f64) -> Option<f64> {
        median(&self.all(field))
    }

    fn cpu_by_round(&self) -> Vec<(usize, f64)> {
        self.figures.iter().map(|(round, figures)| (*round, figures.cpu_us_per_request)).collect()
    }

    fn rounds(&self) -> String {
        match self.disturbed {
            0 => self.figures.len().to_string(),
            disturbed if self.figures.iter().all(|(_, figures)| figures.disturbed) => {
                format!("{disturbed}, all disturbed")
            }
            disturbed => format!("{}, {disturbed} disturbed", self.figures.len()),
        }
    }
}

fn row(text: &mut String, head: &str, fields: &[impl AsRef<str>]) {
    let fields: Vec<&str> = fields.iter().map(AsRef::as_ref).collect();
    let _ = writeln!(text, "| {head} | {} |", fields.join(" | "));
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

/// The items in the order of their first appearance.
fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(server: &str, round: usize, cpu: f64, disturbed: bool) -> Cell {
        let figures = Figures {
            requests_per_second: 1e6 / cpu,
            megabytes_per_second: 1.0,
            cpu_us_per_request: cpu,
            server_utilisation: 1.0,
            client_utilisation: 1.0,
            cpu_busy: 1.0,
            p50_us: 1.0,
            p99_us: 2.0,
            idle_connection_bytes: None,
            disturbed,
        };
        Cell { workload: Workload::Small, server: server.into(), round, outcome: Outcome::Measured(figures) }
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
            workload: Workload::Small,
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
