//! The cells of one server summed up.

use super::cell::{Cell, Figures, Outcome};
use crate::stats::{median, paired_ratio};

/// The rounds of one server doing one task.
pub(crate) enum Sum<'a> {
    Absent,
    /// One wrong answer is enough.
    Failed(&'a str),
    Measured(Measured<'a>),
}

pub(crate) struct Measured<'a> {
    /// By round; without the disturbed ones, unless all are.
    pub(crate) figures: Vec<(usize, &'a Figures)>,
    disturbed: usize,
}

impl<'a> Sum<'a> {
    pub(crate) fn of<T: PartialEq>(cells: &'a [Cell<T>], task: T, server: &str) -> Self {
        let mut all = Vec::new();
        for cell in cells.iter().filter(|cell| cell.task == task && cell.server == server) {
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
        Self::Measured(Measured { figures: all, disturbed })
    }
}

impl Measured<'_> {
    /// The values of a field; rounds without it are passed over.
    pub(crate) fn all<V: Into<Option<f64>>>(&self, field: impl Fn(&Figures) -> V) -> Vec<f64> {
        self.figures.iter().filter_map(|(_, figures)| field(figures).into()).collect()
    }

    pub(crate) fn median<V: Into<Option<f64>>>(&self, field: impl Fn(&Figures) -> V) -> Option<f64> {
        median(&self.all(field))
    }

    /// The median over rounds of the ratio to `reference` in the same round.
    pub(crate) fn ratio(&self, reference: &Self, field: impl Fn(&Figures) -> f64) -> Option<f64> {
        let by_round = |measured: &Measured<'_>| -> Vec<(usize, f64)> {
            measured.figures.iter().map(|(round, figures)| (*round, field(figures))).collect()
        };
        paired_ratio(&by_round(self), &by_round(reference))
    }

    /// The median over rounds of the ratio to `reference` in the same round, which may have failed.
    pub(crate) fn ratio_to(&self, reference: &Sum<'_>, field: impl Fn(&Figures) -> f64) -> Option<f64> {
        match reference {
            Sum::Measured(reference) => self.ratio(reference, field),
            Sum::Absent | Sum::Failed(_) => None,
        }
    }

    pub(crate) fn rounds(&self) -> String {
        match self.disturbed {
            0 => self.figures.len().to_string(),
            disturbed if self.figures.iter().all(|(_, figures)| figures.disturbed) => {
                format!("{disturbed}, all disturbed")
            }
            disturbed => format!("{}, {disturbed} disturbed", self.figures.len()),
        }
    }
}

/// The items in the order of their first appearance.
pub(crate) fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}
