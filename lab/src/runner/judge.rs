//! Whether a claim holds: from the values of rounds, compared within each round.

use std::collections::BTreeMap;

use baton_figures::{Better, Claim, Interval, Paired, Verdict};

use super::series::{Found, Series, pairs};
use crate::experiment::{Aggregate, AggregateKind, Scalar, Statement};

/// The verdict on a claim about these lines. `because` is the reason that the file knows for one that does not hold.
pub(super) fn judge(text: &str, statement: &Statement, series: &[Series], because: Option<&str>) -> Claim {
    let (ours, verdict) = match statement {
        Statement::Ratio(pair, bounds) => ratio(pair, *bounds, series),
        Statement::Order(lines, tolerance) => order(lines, *tolerance, series),
        Statement::Monotone(line, rises) => monotone(line, *rises, series),
        Statement::Peak(line, bounds) => peak(line, *bounds, series),
        Statement::Equal(lines, tolerance) => equal(lines, *tolerance, series),
    };
    let verdict = match (verdict, because) {
        (Verdict::DoesNotHold(found), Some(known)) => Verdict::DoesNotHold(format!("{known} ({found})")),
        (verdict, _) => verdict,
    };
    Claim { published: text.to_owned(), ours, verdict }
}

/// What was found here, and what that says.
type Judged = (String, Verdict);

fn open(why: String) -> Judged {
    ("–".to_owned(), Verdict::Open(why))
}

fn ratio(pair: &[Aggregate; 2], [low, high]: [f64; 2], series: &[Series]) -> Judged {
    let [ours, theirs] = pair.each_ref().map(|aggregate| by_round(aggregate, series));
    let (ours, theirs) = pairs(&ours, &theirs);
    let Some(paired) = Paired::of(&ours, &theirs, Better::More) else {
        return open(format!("no round has both {} and {}", pair[0], pair[1]));
    };
    let found = paired.ratio;
    let verdict = match is_within(found, low, high) {
        Some(true) => Verdict::Holds,
        None => Verdict::Open(format!("{} is only partly within {low} and {high}", shown(found))),
        Some(false) => Verdict::DoesNotHold(format!("{} is not within {low} and {high}", shown(found))),
    };
    (shown(found), verdict)
}

/// Whether the median lies within bounds; `None` if it does not, but a part of the interval does.
fn is_within(found: Interval, low: f64, high: f64) -> Option<bool> {
    let is_inside = (low..=high).contains(&found.median);
    let is_beside = found.low <= high && found.high >= low;
    (is_inside || !is_beside).then_some(is_inside)
}

/// Neighbours in this order: the first may not be below the second by more than a part.
fn order(lines: &[String], tolerance: f64, series: &[Series]) -> Judged {
    let pairs = lines.windows(2).map(|pair| [&pair[0], &pair[1]]).collect();
    at_each_place(lines, pairs, [1.0 - tolerance, f64::INFINITY], "equality", series)
}

/// All as the first, within a part.
fn equal(lines: &[String], tolerance: f64, series: &[Series]) -> Judged {
    let pairs = lines.iter().skip(1).map(|other| [other, &lines[0]]).collect();
    at_each_place(lines, pairs, [1.0 - tolerance, 1.0 + tolerance], "what is equal enough", series)
}

/// At each place that both lines of a pair have, their ratio lies within bounds. Where the median does not and the interval
/// contains what would, the claim is open.
fn at_each_place(
    lines: &[String],
    pairs: Vec<[&String; 2]>,
    [low, high]: [f64; 2],
    what_would: &str,
    series: &[Series],
) -> Judged {
    let (mut compared, mut partly, mut against) = (Vec::new(), Vec::new(), Vec::new());
    for [ours, theirs] in pairs {
        for (x, Paired { ratio, .. }) in paired_places(ours, theirs, series) {
            let what = format!("{ours} : {theirs} at {x}: {}", shown(ratio));
            match is_within(ratio, low, high) {
                Some(true) => {}
                None => partly.push(what.clone()),
                Some(false) => against.push(what.clone()),
            }
            compared.push(((ratio.median - low).min(high - ratio.median), what));
        }
    }
    let verdict = match (&against[..], &partly[..]) {
        _ if compared.is_empty() => return open(format!("no place has {}", lines.join(" and "))),
        ([], []) => Verdict::Holds,
        ([], partly) => Verdict::Open(format!("the interval contains {what_would}: {}", partly.join("; "))),
        (against, _) => Verdict::DoesNotHold(against.join("; ")),
    };
    (worst(compared), verdict)
}

/// All comparisons, or, of many, the one that says most against a claim: that with the least number.
fn worst(compared: Vec<(f64, String)>) -> String {
    let places = compared.len();
    if places <= SHOWN_MAX {
        return compared.into_iter().map(|(_, what)| what).collect::<Vec<_>>().join("; ");
    }
    let worst = compared.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, what)| what);
    format!("at worst of {places} places {}", worst.unwrap_or_default())
}

/// A reader compares so many ratios at a glance.
const SHOWN_MAX: usize = 2;

/// From place to place the line does not turn back further than its intervals, and ends beyond its beginning.
fn monotone(name: &str, rises: bool, series: &[Series]) -> Judged {
    let medians = intervals(name, series);
    let (Some(first), Some(last)) = (medians.first(), medians.last()) else {
        return open(format!("nothing is known of {name}"));
    };
    if medians.len() < 2 {
        return open(format!("{name} has one place only"));
    }
    let turns_back = |pair: &[(Scalar, Interval)]| match rises {
        true => pair[1].1.high < pair[0].1.low,
        false => pair[1].1.low > pair[0].1.high,
    };
    let ends_beyond = if rises { last.1.median > first.1.median } else { last.1.median < first.1.median };
    let shown: Vec<_> = medians.iter().map(|(x, found)| format!("{:.3} at {x}", found.median)).collect();
    let verdict = match medians.windows(2).find(|pair| turns_back(pair)) {
        Some(pair) => Verdict::DoesNotHold(format!("it turns back at {}", pair[1].0)),
        None if ends_beyond => Verdict::Holds,
        None => Verdict::DoesNotHold(format!("{} is not beyond {}", last.1.median, first.1.median)),
    };
    (shown.join(", "), verdict)
}

fn peak(name: &str, [low, high]: [f64; 2], series: &[Series]) -> Judged {
    let medians = intervals(name, series);
    let highest = medians.iter().max_by(|a, b| a.1.median.total_cmp(&b.1.median));
    let Some(place) = highest.and_then(|(x, _)| x.number()) else {
        return open(format!("{name} has no place that is a number"));
    };
    let verdict = match (low..=high).contains(&place) {
        true => Verdict::Holds,
        false => Verdict::DoesNotHold(format!("{place} is not within {low} and {high}")),
    };
    (format!("at {place}"), verdict)
}

/// Places that both lines have, with the ratio of the first to the second.
fn paired_places(ours: &str, theirs: &str, series: &[Series]) -> Vec<(Scalar, Paired)> {
    let line = |name: &str| series.iter().find(|series| series.line == name);
    let (Some(ours), Some(theirs)) = (line(ours), line(theirs)) else { return Vec::new() };
    let place = |(x, found): &(Scalar, Found)| {
        let (ours, theirs) = pairs(found.rounds()?, theirs.at(x)?.rounds()?);
        Some((x.clone(), Paired::of(&ours, &theirs, Better::More)?))
    };
    ours.points.iter().filter_map(place).collect()
}

fn intervals(name: &str, series: &[Series]) -> Vec<(Scalar, Interval)> {
    let points = series.iter().filter(|series| series.line == name).flat_map(|series| &series.points);
    points.filter_map(|(x, found)| Some((x.clone(), found.interval()?))).collect()
}

/// The aggregate of each round that has every place of the line.
fn by_round(aggregate: &Aggregate, series: &[Series]) -> Vec<(usize, f64)> {
    let Aggregate { kind, line, place, .. } = aggregate;
    let Some(line) = line else { return place.as_ref().map_or_else(Vec::new, |x| best(x, series)) };
    let Some(series) = series.iter().find(|series| series.line == *line) else {
        return Vec::new();
    };
    if let Some(x) = place {
        return series.at(x).and_then(|found| found.rounds()).map(<[_]>::to_vec).unwrap_or_default();
    }
    let places: Vec<(&Scalar, &[(usize, f64)])> =
        series.points.iter().filter_map(|(x, found)| Some((x, found.rounds()?))).collect();
    let Some((_, first)) = places.first() else { return Vec::new() };
    let of_round = |round: usize| {
        let value = |rounds: &[(usize, f64)]| {
            rounds.iter().find(|(other, _)| *other == round).map(|(_, value)| *value)
        };
        let values: Vec<f64> = places.iter().map(|(_, rounds)| value(rounds)).collect::<Option<_>>()?;
        match kind {
            AggregateKind::Median => Interval::of(&values).map(|found| found.median),
            AggregateKind::Area => {
                let xs: Vec<f64> = places.iter().map(|(x, _)| x.number()).collect::<Option<_>>()?;
                let strip = |index: usize| {
                    (xs[index + 1] - xs[index]) * f64::midpoint(values[index], values[index + 1])
                };
                Some((0..xs.len() - 1).map(strip).sum())
            }
            AggregateKind::Peak | AggregateKind::At | AggregateKind::Best => {
                values.into_iter().reduce(f64::max)
            }
        }
    };
    first.iter().filter_map(|(round, _)| Some((*round, of_round(*round)?))).collect()
}

/// The largest value of each round at a place.
fn best(x: &Scalar, series: &[Series]) -> Vec<(usize, f64)> {
    let mut found = BTreeMap::new();
    for (round, value) in series.iter().filter_map(|series| series.at(x)?.rounds()).flatten() {
        let largest = found.entry(*round).or_insert(*value);
        *largest = value.max(*largest);
    }
    found.into_iter().collect()
}

fn shown(ratio: Interval) -> String {
    match ratio.has_spread() {
        true => format!("{:.2} ({:.2} to {:.2})", ratio.median, ratio.low, ratio.high),
        false => format!("{:.2}", ratio.median),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line with seven rounds around these medians.
    fn line(name: &str, medians: &[(f64, f64)]) -> Series {
        let point = |&(x, y): &(f64, f64)| {
            let rounds = (0..7).map(|round| (round, y * (1.0 + (round as f64 - 3.0) / 1000.0)));
            (Scalar(x.to_string()), Found::Rounds(rounds.collect()))
        };
        Series { line: name.to_owned(), points: medians.iter().map(point).collect() }
    }

    fn verdict(statement: &Statement, series: &[Series]) -> Verdict {
        judge("a claim", statement, series, None).verdict
    }

    fn aggregate(text: &str) -> Aggregate {
        text.to_owned().try_into().unwrap()
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn each_kind_of_claim_holds_or_does_not() {
        let series = [
            line("a", &[(1.0, 100.0), (2.0, 300.0), (3.0, 200.0)]),
            line("b", &[(1.0, 90.0), (2.0, 100.0), (3.0, 198.0)]),
        ];
        let ratio = |first: &str, second: &str, within| {
            Statement::Ratio([aggregate(first), aggregate(second)], within)
        };
        let holds = [
            ratio("peak(a)", "peak(b)", [1.4, 1.6]),
            ratio("at(a, 2)", "at(b, 2)", [2.9, 3.1]),
            ratio("median(a)", "median(b)", [1.9, 2.1]),
            ratio("area(a)", "area(b)", [1.8, 1.9]),
            ratio("at(b, 3)", "best(3)", [0.98, 1.0]),
            Statement::Order(words(&["a", "b"]), 0.0),
            Statement::Order(words(&["b", "a"]), 0.7),
            Statement::Monotone("b".into(), true),
            Statement::Peak("a".into(), [2.0, 2.0]),
            Statement::Equal(words(&["a", "b"]), 0.7),
        ];
        for statement in &holds {
            assert_eq!(verdict(statement, &series), Verdict::Holds, "{statement:?}");
        }
        let fails = [
            ratio("peak(a)", "peak(b)", [1.6, 2.0]),
            ratio("at(b, 2)", "best(2)", [0.95, 1.0]),
            Statement::Order(words(&["b", "a"]), 0.0),
            Statement::Monotone("a".into(), true),
            Statement::Monotone("b".into(), false),
            Statement::Peak("a".into(), [3.0, 9.0]),
            Statement::Equal(words(&["a", "b"]), 0.05),
        ];
        for statement in &fails {
            assert!(matches!(verdict(statement, &series), Verdict::DoesNotHold(_)), "{statement:?}");
        }
    }

    #[test]
    fn what_was_not_measured_is_open_and_no_success() {
        let series = [line("a", &[(1.0, 100.0)])];
        let open = [
            Statement::Order(words(&["a", "b"]), 0.0),
            Statement::Ratio(["peak(a)", "peak(b)"].map(aggregate), [0.0, 9.0]),
            Statement::Monotone("a".into(), true),
        ];
        for statement in &open {
            assert!(matches!(verdict(statement, &series), Verdict::Open(_)), "{statement:?}");
        }
    }

    /// Rounds that lie on both sides of a bound decide nothing.
    #[test]
    fn an_interval_that_reaches_into_the_bounds_leaves_a_claim_open() {
        let series = [line("a", &[(1.0, 100.0)]), line("b", &[(1.0, 100.0)])];
        let wide = Series {
            line: "b".into(),
            points: vec![(
                Scalar("1".into()),
                Found::Rounds((0..7).map(|round| (round, 80.0 + 10.0 * round as f64)).collect()),
            )],
        };
        let [a, b] = ["at(a, 1)", "at(b, 1)"].map(aggregate);
        let claims = [Statement::Ratio([a, b], [1.0, 1.2]), Statement::Equal(words(&["a", "b"]), 0.02)];
        for statement in &claims {
            assert_eq!(verdict(statement, &series), Verdict::Holds);
            let found = verdict(statement, &[line("a", &[(1.0, 100.0)]), wide.clone()]);
            assert!(matches!(found, Verdict::Open(_)), "{statement:?}: {found}");
        }
    }

    #[test]
    fn a_known_reason_comes_first() {
        let series = [line("a", &[(1.0, 1.0)]), line("b", &[(1.0, 2.0)])];
        let claim = judge("a claim", &Statement::Order(words(&["a", "b"]), 0.0), &series, Some("b is newer"));
        assert!(claim.verdict.reason().starts_with("b is newer (a : b at 1: 0.50"), "{}", claim.verdict);
    }
}
