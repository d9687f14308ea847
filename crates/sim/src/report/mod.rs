//! Reports of runs: what a report tells, and all numbers behind it, as text, JSON, CSV and a page.

mod contents;
mod csv;
mod numbers;

pub use contents::{Run, SimulationReport};

use baton_figures::Report;

impl SimulationReport {
    /// For a terminal.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.presented().to_text()
    }

    /// A row for each run.
    #[must_use]
    pub fn to_csv(&self) -> String {
        csv::render(&self.runs)
    }

    /// Everything.
    ///
    /// # Errors
    /// Only for a number that JSON cannot express.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    /// The findings, with the numbers behind them as tables.
    #[must_use]
    pub fn presented(&self) -> Report {
        let mut report = self.findings.clone();
        report.tables.extend(numbers::tables(self));
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{CHESS, synthesize};

    #[test]
    fn a_report_presents_how_closely_a_trace_fits() {
        let (_, fit) = synthesize(&CHESS, 1000, 1);
        let report = SimulationReport { fits: vec![fit], ..SimulationReport::default() };
        let text = report.to_text();
        assert!(text.contains("trace chess") && text.contains("Assumed: "), "{text}");
        assert!(report.findings.tables.is_empty(), "JSON has the fits as numbers");
    }
}
