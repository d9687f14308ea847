//! Claims: sentences about a figure that a run confirms or not. The kinds are a closed list, without an expression language.

use std::fmt;

use serde::Deserialize;
use toml::Spanned;

use super::mistake::likely;
use super::scalar::Scalar;

/// A claim, as the file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimText {
    /// The sentence, in our words.
    pub(crate) text: String,
    /// The figure that it is about; none: the first.
    pub(crate) figure: Option<Spanned<String>>,
    ratio: Option<[Aggregate; 2]>,
    order: Option<Vec<String>>,
    rises: Option<String>,
    falls: Option<String>,
    peak: Option<String>,
    equal: Option<Vec<String>>,
    /// Bounds of a ratio, or of a peak's place.
    within: Option<[f64; 2]>,
    /// The part by which equals may differ, or by which a line in front of another may be behind it.
    tolerance: Option<f64>,
    /// Why it does not hold where it was measured, if that is known.
    pub(crate) because: Option<String>,
}

/// What a claim says about lines of its figure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Statement {
    /// The first over the second, within these bounds.
    Ratio([Aggregate; 2], [f64; 2]),
    /// At each place the lines in this order, the largest value first; each may be behind the next by this part.
    Order(Vec<String>, f64),
    /// Larger from place to place; `false`: smaller.
    Monotone(String, bool),
    /// Where the line is highest.
    Peak(String, [f64; 2]),
    /// At each place no two lines differ by more than this part.
    Equal(Vec<String>, f64),
}

/// One number for a line, or for all of them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Aggregate {
    pub(crate) kind: AggregateKind,
    /// None: it is of all lines.
    pub(crate) line: Option<String>,
    pub(crate) place: Option<Scalar>,
    /// As the file has it.
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AggregateKind {
    Peak,
    At,
    Median,
    /// Below the line, for an axis of numbers.
    Area,
    /// The largest of all lines at a place.
    Best,
}

impl ClaimText {
    /// What it says.
    pub(super) fn statement(&self) -> Result<Statement, String> {
        let Self { ratio, order, rises, falls, peak, equal, within, tolerance, .. } = self.clone();
        let bounds = || within.ok_or("`within = [low, high]` is missing".to_owned());
        Ok(match (ratio, order, rises, falls, peak, equal) {
            (Some(pair), None, None, None, None, None) => Statement::Ratio(pair, bounds()?),
            (None, Some(lines), None, None, None, None) => Statement::Order(lines, tolerance.unwrap_or(0.0)),
            (None, None, Some(line), None, None, None) => Statement::Monotone(line, true),
            (None, None, None, Some(line), None, None) => Statement::Monotone(line, false),
            (None, None, None, None, Some(line), None) => Statement::Peak(line, bounds()?),
            (None, None, None, None, None, Some(lines)) => {
                Statement::Equal(lines, tolerance.ok_or("`tolerance = 0.05` is missing".to_owned())?)
            }
            _ => {
                return Err(
                    "a claim has one of `ratio`, `order`, `rises`, `falls`, `peak` and `equal`".into()
                );
            }
        })
    }
}

impl Statement {
    /// The lines that it names.
    pub(crate) fn lines(&self) -> Vec<&str> {
        match self {
            Self::Ratio(pair, _) => pair.iter().filter_map(|aggregate| aggregate.line.as_deref()).collect(),
            Self::Order(lines, _) | Self::Equal(lines, _) => lines.iter().map(String::as_str).collect(),
            Self::Monotone(line, _) | Self::Peak(line, _) => vec![line],
        }
    }

    /// The places that it names.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Scalar> {
        let pair = if let Self::Ratio(pair, _) = self { &pair[..] } else { &[] };
        pair.iter().filter_map(|aggregate| aggregate.place.as_ref())
    }
}

impl TryFrom<String> for Aggregate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is none of peak(line), at(line, x), median(line), area(line), best(x)");
        let (name, rest) = text.split_once('(').ok_or_else(wrong)?;
        let inside = rest.strip_suffix(')').ok_or_else(wrong)?.trim();
        let (kind, line, place) = match name.trim() {
            "peak" => (AggregateKind::Peak, Some(inside), None),
            "median" => (AggregateKind::Median, Some(inside), None),
            "area" => (AggregateKind::Area, Some(inside), None),
            "best" => (AggregateKind::Best, None, Some(inside)),
            "at" => {
                let (line, x) = inside.rsplit_once(',').ok_or_else(wrong)?;
                (AggregateKind::At, Some(line.trim()), Some(x.trim()))
            }
            unknown => {
                let meant = likely(unknown, ["peak", "at", "median", "area", "best"]).ok_or_else(wrong)?;
                return Err(format!("`{unknown}` is not known: did you mean `{meant}`?"));
            }
        };
        let (line, place) = (line.map(str::to_owned), place.map(Scalar::from));
        Ok(Self { kind, line, place, text })
    }
}

impl fmt::Display for Aggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
