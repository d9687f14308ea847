//! Lines compared within rounds: Baton with each other server, or all lines with a reference.

use baton_figures::{Better, Datum, Paired, SAMPLES_MIN, Table};

use super::series::{Found, Series, names, pairs};
use crate::experiment::{Experiment, FigureText};

/// The comparison that belongs to a figure, if there is one: Baton divided by each other server, a row for each place and each
/// way in which Baton competes; or each line divided by the reference.
pub(super) fn comparison(experiment: &Experiment, text: &FigureText, series: &[Series]) -> Option<Table> {
    let is_of_peers = experiment.compares_peers() && text.lines.get_ref() == "contender";
    let baton = |name: &str| {
        experiment.contenders.iter().any(|other| other.name == name && other.what.server == "baton")
    };
    let reference = text.reference.as_ref().map(toml::Spanned::get_ref);
    let is_row = |line: &&Series| match is_of_peers {
        true => baton(&line.line),
        false => reference == Some(&line.line),
    };
    let (rows, columns): (Vec<&Series>, Vec<&Series>) = series.iter().partition(is_row);
    let cell = |row: &Series, column: &Series, x| {
        let (ours, theirs) = if is_of_peers { (row, column) } else { (column, row) };
        verdict(ours.at(x), theirs.at(x), text.y.better())
    };
    let row = |row: &Series, x| {
        let place = if rows.len() > 1 { format!("{x}, {}", row.line) } else { format!("{x}") };
        [place].into_iter().chain(columns.iter().map(|column| cell(row, column, x))).collect()
    };
    let (title, corner) = match reference.filter(|_| !is_of_peers) {
        None => ("Baton divided by each other server".to_owned(), "Baton to"),
        Some(reference) => (format!("Divided by {reference}"), text.x.get_ref().as_str()),
    };
    let cells: Vec<_> = names(series).iter().flat_map(|x| rows.iter().map(|line| row(line, x))).collect();
    (!columns.is_empty() && !cells.is_empty()).then(|| Table {
        title: format!("{title}: {}", text.y.unit()),
        head: [corner.to_owned()].into_iter().chain(columns.iter().map(|line| line.line.clone())).collect(),
        rows: cells,
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
