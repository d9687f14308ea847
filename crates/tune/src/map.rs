//! What was tried, as a heat map.

use std::collections::BTreeSet;

use baton_figures::{Axis, Datum, Figure, FigureKind, Interval, Line, Point};

use crate::goal::TrialOutcome;
use crate::search::{Search, Tried};
use crate::space::Candidate;

impl Search {
    /// A row for each kind with so many tasks, a column for each bound of connections; of several sizes of caches, the best.
    #[must_use]
    pub fn map(&self) -> Figure {
        let columns: BTreeSet<u32> = self.tried.keys().map(|candidate| candidate.connections).collect();
        let rows: BTreeSet<(usize, u32)> =
            self.tried.keys().map(|candidate| (candidate.kind, candidate.tasks)).collect();
        let line = |(kind, tasks): (usize, u32)| {
            let name = self.space.kinds.get(kind).map_or("", |kind| kind.name.as_str());
            let points = columns.iter().enumerate().filter_map(|(at, &connections)| {
                let of = |candidate: &Candidate| {
                    (candidate.kind, candidate.tasks, candidate.connections) == (kind, tasks, connections)
                };
                Some(Point { x: at as f64, datum: self.datum(of)? })
            });
            let name = if tasks == 0 { name.to_owned() } else { format!("{name} × {tasks}") };
            Line { name, points: points.collect() }
        };
        Figure {
            name: "tune".into(),
            title: "What was tried".into(),
            kind: FigureKind::HeatMap,
            x: Axis::named("connections", columns.iter().map(ToString::to_string).collect()),
            y: Axis::linear(self.goal.words(), "% of the present settings"),
            by: "architecture × processes or threads".into(),
            lines: rows.into_iter().map(line).collect(),
            ..Figure::default()
        }
    }

    /// The best of the candidates that fit; if none was fair, why the last was not.
    fn datum(&self, fits: impl Fn(&Candidate) -> bool) -> Option<Datum> {
        let better = self.goal.better();
        let tried: Vec<&Tried> =
            self.tried.iter().filter(|(candidate, _)| fits(candidate)).map(|(_, tried)| tried).collect();
        let fair = tried.iter().filter(|tried| tried.excluded.is_none());
        let best = fair
            .filter_map(|tried| Some((tried.gain(better)?, tried.paired(better)?.ratio)))
            .max_by(|one, other| one.0.total_cmp(&other.0));
        if let Some((_, Interval { low, median, high })) = best {
            let percent = |ratio: f64| 100.0 * ratio;
            return Some(Datum::Number(Interval {
                low: percent(low),
                median: percent(median),
                high: percent(high),
            }));
        }
        match tried.iter().find_map(|tried| tried.excluded.clone())? {
            TrialOutcome::Unfair(why) => Some(Datum::Unfair(why)),
            TrialOutcome::Failed(why) => Some(Datum::Failed(why)),
            TrialOutcome::Fair(_) => None,
        }
    }
}
