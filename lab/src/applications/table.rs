//! The cells summed up, as Markdown.

use std::fmt::Write;

use super::task::Response;
use crate::comparison::{Cell, Figures, Measured, Sum, distinct};
use crate::markdown::{begin_table, failed_row, number, row, spread};

/// A table for each length of response: throughput, as a ratio to the first server and to our plain protocol, and the
/// CPU time of server and application.
pub(super) fn markdown(cells: &[Cell<Response>], machine: &str) -> String {
    let mut text = format!("{machine}\n");
    for response in distinct(cells.iter().map(|cell| cell.task)) {
        let of_response = || cells.iter().filter(|cell| cell.task == response);
        let servers = distinct(of_response().map(|cell| cell.server.as_str()));
        let _ = writeln!(text, "\n## {response}\n");
        let reference = servers.first().copied().unwrap_or_default();
        let plain = servers.iter().copied().find(|server| PLAIN.contains(server));
        begin_table(
            &mut text,
            "server",
            &[
                "requests/s",
                &format!("ratio to {reference}"),
                &format!("ratio to {}", plain.unwrap_or("–")),
                "MB/s",
                "CPU us/request",
                "of it the application",
                "CPU ratio",
                "p50 us",
                "p99 us",
                "spread",
                "rounds",
            ],
        );
        for server in servers {
            match Sum::of(cells, response, server) {
                Sum::Absent => {}
                Sum::Failed(why) => failed_row(&mut text, server, why),
                Sum::Measured(sum) => {
                    let ratio = |to: Option<&str>, field: fn(&Figures) -> f64| {
                        sum.ratio_to(&Sum::of(cells, response, to?), field)
                    };
                    let rate: fn(&Figures) -> f64 = |figures| figures.requests_per_second;
                    let cpu: fn(&Figures) -> f64 = |figures| figures.cpu_us_per_request;
                    let ratios =
                        [ratio(Some(reference), rate), ratio(plain, rate), ratio(Some(reference), cpu)];
                    row(&mut text, server, &fields(&sum, ratios));
                }
            }
        }
    }
    text
}

fn fields(sum: &Measured<'_>, [to_reference, to_plain, cpu_ratio]: [Option<f64>; 3]) -> Vec<String> {
    vec![
        number(sum.median(|figures| figures.requests_per_second), 0),
        number(to_reference, 2),
        number(to_plain, 2),
        number(sum.median(|figures| figures.megabytes_per_second), 0),
        number(sum.median(|figures| figures.cpu_us_per_request), 1),
        number(sum.median(|figures| figures.application_us_per_request), 1),
        number(cpu_ratio, 2),
        number(sum.median(|figures| figures.p50_us), 0),
        number(sum.median(|figures| figures.p99_us), 0),
        spread(&sum.all(|figures| figures.requests_per_second)),
        sum.rounds(),
    ]
}

/// Our plain protocol, to which the published figures compare.
const PLAIN: [&str; 2] = ["baton unix", "baton unix + php-fpm"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Outcome;

    fn cell(server: &str, round: usize, rate: f64) -> Cell<Response> {
        let figures = Figures {
            requests_per_second: rate,
            megabytes_per_second: 1.0,
            cpu_us_per_request: 1e6 / rate,
            application_us_per_request: Some(4.0),
            server_utilisation: 1.0,
            client_utilisation: 1.0,
            cpu_busy: 1.0,
            p50_us: Some(1.0),
            p99_us: Some(2.0),
            idle_connection_bytes: None,
            disturbed: false,
        };
        Cell { task: Response::C32k, server: server.into(), round, outcome: Outcome::Measured(figures) }
    }

    #[test]
    fn throughput_is_compared_with_the_first_server_and_with_our_own_plain_protocol() {
        let cells = [cell("nginx", 0, 100.0), cell("baton unix", 0, 125.0), cell("baton passfd", 0, 250.0)];
        let text = markdown(&cells, "a machine");
        assert!(text.contains("| baton passfd | 250 | 2.50 | 2.00 |"), "{text}");
        assert!(text.contains("| nginx | 100 | 1.00 | 0.80 |"), "{text}");
    }
}
