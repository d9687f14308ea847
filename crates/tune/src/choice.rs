//! What is recommended in the end.

use baton_figures::{Better, Comparison, Paired};

use crate::search::Search;
use crate::space::Candidate;

/// What is recommended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Choice {
    /// These settings are shown to be better.
    Change(Candidate, Paired),
    /// Nothing is shown to be better; the best that was found, if anything was fair.
    Keep(Option<(Candidate, Paired)>),
}

impl Search {
    /// What is recommended, from what was measured so far.
    #[must_use]
    pub fn choice(&self) -> Choice {
        let better = self.goal.better();
        let paired = |candidate: Candidate| Some((candidate, self.tried.get(&candidate)?.paired(better)?));
        let finalists: Vec<(Candidate, Paired)> = self.finalists().into_iter().filter_map(paired).collect();
        let Some((_, best)) = finalists.first() else { return Choice::Keep(None) };
        let equals = finalists.iter().filter(|(_, paired)| is_equal(paired, best, better));
        match equals.min_by_key(|(candidate, _)| candidate.cost()) {
            Some(&(candidate, paired)) if paired.comparison == Some(Comparison::Ahead) => {
                Choice::Change(candidate, paired)
            }
            cheapest => Choice::Keep(cheapest.copied()),
        }
    }
}

/// Whether a finalist is as good as the best: their intervals meet, and its median is not much worse.
fn is_equal(one: &Paired, best: &Paired, better: Better) -> bool {
    let (one, best) = (one.ratio, best.ratio);
    let meets = one.low <= best.high && best.low <= one.high;
    meets
        && match better {
            Better::More => one.median >= best.median * (1.0 - EQUAL),
            Better::Less => one.median <= best.median * (1.0 + EQUAL),
        }
}

/// Wide intervals must not make everything equal.
const EQUAL: f64 = 0.02;
