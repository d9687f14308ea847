//! Tables: of what is in no figure, and the numbers of a figure.

use serde::{Deserialize, Serialize};

use crate::figure::{Datum, Figure};
use crate::interval::Interval;
use crate::number::brief;

/// A table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// Above it; may be empty.
    #[serde(default)]
    pub title: String,
    /// Its columns.
    pub head: Vec<String>,
    /// Its rows, as wide as the head.
    pub rows: Vec<Vec<String>>,
    /// Below it; may be empty.
    #[serde(default)]
    pub note: String,
    /// Whether it is too long for anything but a page, which folds it.
    #[serde(default)]
    pub is_long: bool,
}

impl Table {
    /// This table, turned if it is wider than long: a page has more room downwards.
    pub fn upright(&self) -> Self {
        if self.head.len() <= self.rows.len() + 1 {
            return self.clone();
        }
        let column = |at: usize| {
            let cells = self.rows.iter().map(|row| row.get(at).cloned().unwrap_or_default());
            [self.head[at].clone()].into_iter().chain(cells).collect()
        };
        let mut columns = (0..self.head.len()).map(column);
        let head = columns.next().unwrap_or_default();
        Self { head, rows: columns.collect(), ..self.clone() }
    }
}

impl Figure {
    /// The numbers: a row for each place on the horizontal axis, a column for each line and each published one.
    pub fn table(&self) -> Table {
        let lines = self.lines.iter().map(|line| line.name.clone());
        let published = self.published.iter().filter(|line| !line.name.is_empty());
        let head = [self.x.caption()]
            .into_iter()
            .chain(lines)
            .chain(published.clone().map(|line| line.name.clone()))
            .collect();
        let row = |x: f64| {
            let ours = self.lines.iter().map(|line| line.at(x).map(cell).unwrap_or_default());
            let theirs = published.clone().map(|line| {
                let at = line.points.iter().find(|point| point.0 == x);
                at.map(|point| brief(point.1)).unwrap_or_default()
            });
            [self.x.tick(x)].into_iter().chain(ours).chain(theirs).collect()
        };
        let rows = self.xs().into_iter().map(row).collect();
        Table { title: self.caption(), head, rows, note: self.reasons().join("; "), is_long: false }
    }

    /// Title and unit.
    fn caption(&self) -> String {
        match (self.title.as_str(), self.y.caption()) {
            (title, unit) if unit.is_empty() => title.to_owned(),
            ("", unit) => unit,
            (title, unit) => format!("{title} ({unit})"),
        }
    }
}

fn cell(datum: &Datum) -> String {
    match datum {
        Datum::Number(interval) => spread(interval),
        _ => datum.sign().to_owned(),
    }
}

fn spread(interval: &Interval) -> String {
    let median = brief(interval.median);
    if interval.has_spread() {
        format!("{median} ({}–{})", brief(interval.low), brief(interval.high))
    } else {
        median
    }
}
