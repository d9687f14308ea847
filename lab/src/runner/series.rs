//! The lines of a figure, from what was kept: for each place on the axis the values of all rounds, or why there are none.

use baton_figures::{Datum, Interval};

use super::record::{CellRecord, Outcome};
use crate::experiment::{Experiment, FigureText, Scalar, values};
use crate::quantity::Quantity;

/// A line of a figure.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) line: String,
    /// Places, and what was found there.
    pub(super) points: Vec<(Scalar, Found)>,
}

/// Values by round, or why there are none.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    Rounds(Vec<(usize, f64)>),
    Nothing(Datum),
}

impl Series {
    /// All lines of the figure, in the order of the file. Places where nothing was measured yet are left out.
    pub(super) fn of(experiment: &Experiment, figure: &FigureText, records: &[CellRecord]) -> Vec<Self> {
        let values_of = |parameter: &str| match experiment.head.procedure {
            // What a procedure finds, its file does not say.
            Some(_) => values(records.iter().map(|record| &record.parameters), parameter, figure),
            None => experiment.values(parameter, figure),
        };
        let xs = values_of(figure.x.get_ref());
        let line = |name: String| {
            let point = |x: &String| {
                let x = Scalar(x.clone());
                let wanted = [(figure.x.get_ref(), &x), (figure.lines.get_ref(), &Scalar(name.clone()))];
                let is_of = |record: &&CellRecord| {
                    let has =
                        |parameter: &str, value: &Scalar| record.parameters.get(parameter) == Some(value);
                    wanted.iter().all(|(parameter, value)| has(parameter, value))
                        && figure.only.iter().all(|(parameter, value)| has(parameter, value))
                };
                let found = found(records.iter().filter(is_of), figure.y)?;
                Some((x, found))
            };
            Self { points: xs.iter().filter_map(point).collect(), line: name }
        };
        values_of(figure.lines.get_ref()).into_iter().map(line).collect()
    }

    pub(super) fn at(&self, x: &Scalar) -> Option<&Found> {
        self.points.iter().find(|(place, _)| place == x).map(|(_, found)| found)
    }
}

impl Found {
    pub(crate) fn rounds(&self) -> Option<&[(usize, f64)]> {
        match self {
            Self::Rounds(rounds) => Some(rounds),
            Self::Nothing(_) => None,
        }
    }

    pub(super) fn interval(&self) -> Option<Interval> {
        Interval::of(&self.rounds()?.iter().map(|(_, value)| *value).collect::<Vec<_>>())
    }

    pub(super) fn datum(&self) -> Datum {
        match (self, self.interval()) {
            (Self::Nothing(datum), _) => datum.clone(),
            (Self::Rounds(_), Some(interval)) => Datum::Number(interval),
            (Self::Rounds(_), None) => Datum::Failed("no number".to_owned()),
        }
    }
}

/// The rounds of a cell, without disturbed ones unless all are. One failed round fails the cell.
pub(crate) fn found<'a>(records: impl Iterator<Item = &'a CellRecord>, what: Quantity) -> Option<Found> {
    let mut rounds = Vec::new();
    for record in records {
        match &record.outcome {
            Outcome::Measured(values) => {
                rounds.extend(what.of(values).map(|value| (record.round, value, record.disturbed)));
            }
            Outcome::Unfair(why) => return Some(Found::Nothing(Datum::Unfair(why.clone()))),
            Outcome::Failed(why) => return Some(Found::Nothing(Datum::Failed(why.clone()))),
            Outcome::Cannot(why) => return Some(Found::Nothing(Datum::Cannot(why.clone()))),
        }
    }
    let all_disturbed = rounds.iter().all(|(_, _, disturbed)| *disturbed);
    rounds.retain(|(_, _, disturbed)| all_disturbed || !disturbed);
    (!rounds.is_empty())
        .then(|| Found::Rounds(rounds.into_iter().map(|(round, value, _)| (round, value)).collect()))
}

/// Places on the axis, in the order of the file.
pub(super) fn names(series: &[Series]) -> Vec<Scalar> {
    let mut names: Vec<Scalar> = Vec::new();
    for (x, _) in series.iter().flat_map(|series| &series.points) {
        if !names.contains(x) {
            names.push(x.clone());
        }
    }
    names
}

/// The values of rounds that both have, in pairs.
pub(crate) fn pairs(ours: &[(usize, f64)], theirs: &[(usize, f64)]) -> (Vec<f64>, Vec<f64>) {
    let partner = |round: usize| theirs.iter().find(|(other, _)| *other == round).map(|(_, value)| *value);
    ours.iter().filter_map(|(round, value)| Some((*value, partner(*round)?))).unzip()
}
