//! The table at the top of the README: one line for each kind of work, from recorded runs.

use baton_figures::{Better, Paired, Table};

use super::recorded::Recorded;
use crate::quantity::Quantity;
use crate::runner::{CellRecord, found, pairs};

/// CPU time of each request as a ratio to nginx, within rounds. Work that is not recorded has no row.
pub(super) fn block(recorded: &Recorded) -> String {
    let rows: Vec<Vec<String>> = ROWS.iter().filter_map(|row| row.cells(recorded.lines(row.1))).collect();
    if rows.is_empty() {
        return "*Not recorded yet:* `baton-lab run files proxy cache tls applications --record`.\n"
            .to_owned();
    }
    let head = ["workload", "Baton"].iter().chain(&OTHERS).chain(&[REFERENCE]);
    let head = head.map(|name| (*name).to_owned()).collect();
    Table { head, rows, ..Table::default() }.to_markdown()
}

/// A line of the table: its words, an experiment, a load of it, and the contender that is Baton there.
struct Row(&'static str, &'static str, &'static str, &'static str);

impl Row {
    fn cells(&self, lines: &[CellRecord]) -> Option<Vec<String>> {
        let rounds = |contender: &str| {
            let is_of = |line: &&CellRecord| line.load == self.2 && line.contender == contender;
            Some(found(lines.iter().filter(is_of), Quantity::CpuUs)?.rounds()?.to_vec())
        };
        let base = rounds(REFERENCE)?;
        let ratio = |contender: &str| {
            let (ours, theirs) = pairs(&rounds(contender)?, &base);
            Some(Paired::of(&ours, &theirs, Better::Less)?.ratio.median)
        };
        let mut ratios = vec![Some(ratio(self.3)?)];
        ratios.extend(OTHERS.iter().map(|other| ratio(other)));
        ratios.push(Some(1.0));
        let least = ratios.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        let cell = |ratio: &Option<f64>| match ratio {
            Some(ratio) if *ratio <= least => format!("**{ratio:.2}**"),
            Some(ratio) => format!("{ratio:.2}"),
            None => "–".to_owned(),
        };
        Some([self.0.to_owned()].into_iter().chain(ratios.iter().map(cell)).collect())
    }
}

const ROWS: [Row; 16] = [
    Row("files, 1 KB, kept alive", "files", "1 KB", "baton"),
    Row("files, 1 KB, a connection each", "files", "1 KB, a connection each", "baton"),
    Row("files, 1 MB", "files", "1 MB", "baton"),
    Row("files, SPECweb99-like mix of 205 MB", "files", "SPECweb99-like mix", "baton"),
    Row("FastCGI, 128 KB of a C program", "applications", "131072 bytes", "baton unix"),
    Row("the same, on the client's own socket", "applications", "131072 bytes", "baton passfd"),
    Row("php-fpm, 60 KB", "php", "60 KB", "baton unix"),
    Row("the same, the script names the file", "php", "60 KB", "baton unix + extension"),
    Row("TLS 1.3, 1 KB", "tls", "TLS, 1 KB", "baton"),
    Row("TLS 1.3, 1 MB", "tls", "TLS, 1 MB", "baton"),
    Row("HTTP/2 over TLS, 1 KB, 100 streams", "tls", "HTTP/2, 1 KB, 8 × 100", "baton"),
    Row("HTTP/2 over TLS, 16 KB, 32 streams", "tls", "HTTP/2, 16 KB, 8 × 32", "baton"),
    Row("a full TLS handshake", "handshakes", "full handshake", "baton"),
    Row("proxy, 1 KB", "proxy", "1 KB", "baton"),
    Row("proxy, 1 MB", "proxy", "1 MB", "baton"),
    Row("from the shared cache, 1 KB", "cache", "1 KB", "baton"),
];
const OTHERS: [&str; 6] = ["lighttpd", "h2o", "apache-event", "caddy", "haproxy", "varnish"];
const REFERENCE: &str = "nginx";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn each_row_is_a_cell_of_an_experiment() {
        for Row(words, name, load_name, ours) in ROWS {
            let experiment = Experiment::find(name).unwrap();
            let has = |contender: &str| {
                experiment.cells().any(|(load, other)| load.name == load_name && other.name == contender)
            };
            assert!(has(ours) && has(REFERENCE), "{name}: {words}");
        }
    }
}
