//! Lines compared within rounds: Baton with each other server, or all lines with a reference.

use baton_figures::{Better, Datum, Paired, SAMPLES_MIN, Table};

use super::series::{Found, Series, names, pairs};
use crate::experiment::{Experiment, FigureText};

/// The comparison that belongs to a figure, if there is one.
pub(super) fn comparison(experiment: &Experiment, text: &FigureText, series: &[Series]) -> Option<Table> {
    if experiment.compares_peers() && text.lines.get_ref() == "contender" {
        return verdicts(experiment, text, series);
    }
    ratios(text, text.reference.as_ref()?.get_ref(), series)
}

/// Baton beside each other server: a row for each place and each way in which Baton competes.
fn verdicts(experiment: &Experiment, text: &FigureText, series: &[Series]) -> Option<Table> {
    let is_ours = |line: &&Series| {
        experiment.contenders.iter().any(|other| other.name == line.line && other.what.server == "baton")
    };
    let (ours, theirs): (Vec<_>, Vec<_>) = series.iter().partition(is_ours);
    let row = |line: &Series, x| {
        let place = if ours.len() > 1 { format!("{x}, {}", line.line) } else { format!("{x}") };
        let cells = theirs.iter().map(|other| verdict(line.at(x), other.at(x), better(text)));
        [place].into_iter().chain(cells).collect()
    };
    let rows: Vec<_> = names(series).iter().flat_map(|x| ours.iter().map(move |line| row(line, x))).collect();
    (!theirs.is_empty() && !rows.is_empty()).then(|| Table {
        title: format!("Baton divided by each other server: {}", text.y.unit()),
        head: ["Baton to".to_owned()]
            .into_iter()
            .chain(theirs.iter().map(|line| line.line.clone()))
            .collect(),
        rows,
        note: NOTE.to_owned(),
        is_long: false,
    })
}

/// Each line divided by the reference: a row for each place.
fn ratios(text: &FigureText, reference: &str, series: &[Series]) -> Option<Table> {
    let base = series.iter().find(|line| line.line == reference)?;
    let others: Vec<_> = series.iter().filter(|line| line.line != reference).collect();
    let row = |x| {
        let cells = others.iter().map(|line| verdict(line.at(x), base.at(x), better(text)));
        [format!("{x}")].into_iter().chain(cells).collect()
    };
    Some(Table {
        title: format!("Divided by {reference}: {}", text.y.unit()),
        head: [text.x.get_ref().clone()]
            .into_iter()
            .chain(others.iter().map(|line| line.line.clone()))
            .collect(),
        rows: names(series).iter().map(row).collect(),
        note: NOTE.to_owned(),
        is_long: false,
    })
}

/// A word where the interval allows one, the ratio, its interval; or why there is none.
fn verdict(ours: Option<&Found>, theirs: Option<&Found>, better: Better) -> String {
    let (ours, theirs) = match (ours, theirs) {
        (Some(Found::Rounds(ours)), Some(Found::Rounds(theirs))) => pairs(ours, theirs),
        (Some(Found::Nothing(Datum::Cannot(_))), _) | (_, Some(Found::Nothing(Datum::Cannot(_)))) => {
            return "cannot".to_owned();
        }
        (Some(Found::Nothing(_)), _) | (_, Some(Found::Nothing(_))) => return "×".to_owned(),
        (None, _) | (_, None) => return "–".to_owned(),
    };
    let Some(Paired { ratio, comparison }) = Paired::of(&ours, &theirs, better) else {
        return "–".to_owned();
    };
    let word = match comparison {
        Some(comparison) => comparison.to_string(),
        None if ours.len() < SAMPLES_MIN => "few rounds".to_owned(),
        None => "unclear".to_owned(),
    };
    format!("{word}: {:.2} ({:.2}–{:.2})", ratio.median, ratio.low, ratio.high)
}

fn better(text: &FigureText) -> Better {
    if text.y.is_better_if_more() { Better::More } else { Better::Less }
}

const NOTE: &str = "Medians of ratios within rounds, in brackets the interval of 95 %: ahead, level and behind stand where it \
                    shows that, unclear where it does not; fewer than six rounds have no such interval.";

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(values: &[f64]) -> Found {
        Found::Rounds(values.iter().copied().enumerate().collect())
    }

    #[test]
    fn a_word_stands_only_where_the_interval_allows_it() {
        let said = |ours: &[f64]| verdict(Some(&rounds(ours)), Some(&rounds(&[2.0; 7])), Better::Less);
        assert_eq!(said(&[1.0; 7]), "ahead: 0.50 (0.50–0.50)");
        assert_eq!(said(&[3.0; 7]), "behind: 1.50 (1.50–1.50)");
        assert_eq!(said(&[1.0; 3]), "few rounds: 0.50 (0.50–0.50)");
        assert!(said(&[1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 2.0]).starts_with("unclear: 1.00"));
        let cannot = Found::Nothing(Datum::Cannot("not installed".into()));
        assert_eq!(verdict(Some(&rounds(&[1.0])), Some(&cannot), Better::Less), "cannot");
        assert_eq!(verdict(Some(&rounds(&[1.0])), None, Better::Less), "–");
    }
}
