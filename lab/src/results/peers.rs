//! The page of peers: a verdict in each cell of each group.

use std::fmt::Write;

use super::recorded::{Recorded, not_recorded};
use crate::experiment::Experiment;

/// All experiments that compare servers, in the order of their names.
pub(super) fn block(experiments: &[Experiment], recorded: &Recorded) -> String {
    let mut text = String::new();
    for experiment in experiments {
        if !experiment.compares_peers() {
            continue;
        }
        let _ = write!(text, "\n## {}\n\n", experiment.head.title);
        match recorded.report(experiment) {
            Some(report) => {
                for table in &report.tables {
                    let _ = write!(text, "{}\n\n{}\n", table.title, table.upright().to_markdown());
                }
                let _ = writeln!(text, "{}", report.words.last().cloned().unwrap_or_default());
            }
            None => text += &not_recorded(experiment),
        }
    }
    text
}
