//! A row for each run, for spreadsheets and scripts.

use std::fmt::Write;

use super::contents::Run;

pub(super) fn render(runs: &[Run]) -> String {
    let mut text = COLUMNS.map(|(name, _)| name).join(",");
    text.push('\n');
    for run in runs {
        for (at, (_, cell)) in COLUMNS.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _ = write!(text, "{comma}{}", quoted(&cell(run)));
        }
        text.push('\n');
    }
    text
}

type Cell = fn(&Run) -> String;

const COLUMNS: [(&str, Cell); 23] = [
    ("trace", |run| run.outcome.trace.clone()),
    ("variant", |run| run.variant.clone()),
    ("policy", |run| run.outcome.policy.clone()),
    ("nodes", |run| run.outcome.nodes.to_string()),
    ("answered", |run| run.outcome.answered.to_string()),
    ("unanswered", |run| run.outcome.unanswered.to_string()),
    ("retried", |run| run.outcome.retried.to_string()),
    ("seconds", |run| run.outcome.seconds.to_string()),
    ("requests_per_s", |run| run.outcome.throughput.to_string()),
    ("mbit_per_s", |run| run.outcome.mbit_s.to_string()),
    ("miss_ratio", |run| run.outcome.miss_ratio.to_string()),
    ("shared_share_of_misses", |run| run.outcome.shared_miss_ratio.to_string()),
    ("lent_share_of_misses", |run| run.outcome.lent_ratio.to_string()),
    ("idle", |run| run.outcome.idle.to_string()),
    ("cpu_busy", |run| run.outcome.cpu_busy.to_string()),
    ("disk_busy", |run| run.outcome.disk_busy.to_string()),
    ("front_end_busy", |run| run.outcome.front_end_busy.to_string()),
    ("delay_mean_ms", |run| run.outcome.delay.mean_ms.to_string()),
    ("delay_p50_ms", |run| run.outcome.delay.p50_ms.to_string()),
    ("delay_p99_ms", |run| run.outcome.delay.p99_ms.to_string()),
    ("delay_spread_ms", |run| run.outcome.delay_spread_ms.to_string()),
    ("load_max", |run| run.outcome.load_max.to_string()),
    ("reassignments", |run| run.outcome.reassignments.to_string()),
];

/// Quotes a cell where RFC 4180 needs it.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn cells_are_quoted_where_needed() {
        assert_eq!(["a b", "a,b", "a\"b"].map(quoted), ["a b", "\"a,b\"", "\"a\"\"b\""]);
    }
}
