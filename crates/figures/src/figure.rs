//! What a figure shows: lines, bars or a heat map of data with intervals, and published values on the same axes.

use serde::{Deserialize, Serialize};

use crate::interval::Interval;

/// A figure.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Figure {
    /// A name for files and for marked blocks of documents.
    pub name: String,
    /// Above the figure.
    pub title: String,
    /// How it is drawn.
    #[serde(default)]
    pub kind: FigureKind,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis; of a heat map, what its cells contain.
    pub y: Axis,
    /// What tells the lines apart, such as `processes`; of a heat map, the vertical axis.
    #[serde(default)]
    pub by: String,
    /// The lines; of bars, those of a colour; of a heat map, the rows.
    pub lines: Vec<Line>,
    /// Published values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Lines with a dot and a whisker for each point.
    #[default]
    Lines,
    /// Bars with whiskers, those of all lines side by side.
    Bars,
    /// A row for each line, a column for each `x`.
    HeatMap,
}

/// An axis.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Axis {
    /// What it measures.
    pub label: String,
    /// In which unit; empty if the label says it, or if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Where its values are.
    #[serde(default)]
    pub scale: Scale,
}

/// Where values are on an axis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Equal steps are equal differences.
    #[default]
    Linear,
    /// Equal steps are equal factors.
    Logarithmic,
    /// The names of 0, 1, 2, …
    Named(Vec<String>),
}

/// A line of a figure.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Line {
    /// In the legend.
    pub name: String,
    /// From left to right.
    pub points: Vec<Point>,
}

/// A point of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Where on the horizontal axis.
    pub x: f64,
    /// What was found there.
    #[serde(flatten)]
    pub datum: Datum,
}

/// What was found at a point: a number with its interval, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Datum {
    /// The median of what was measured.
    Number(Interval),
    /// Something was measured that must not be compared, and why: some clients were served at the others' expense.
    Unfair(String),
    /// The run broke off, and why.
    Failed(String),
    /// The contender or the machine cannot do it, and why.
    Cannot(String),
}

/// Published values: a point, or a line of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Published {
    /// In the legend, such as `published: 2.5 × WRR`.
    pub name: String,
    /// From left to right.
    pub points: Vec<(f64, f64)>,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str, unit: &str) -> Self {
        Self { label: label.to_owned(), unit: unit.to_owned(), scale: Scale::Linear }
    }

    /// An axis on which equal steps are equal factors.
    pub fn logarithmic(label: &str, unit: &str) -> Self {
        Self { scale: Scale::Logarithmic, ..Self::linear(label, unit) }
    }

    /// An axis on which 0, 1, 2, … have names.
    pub fn named(label: &str, names: Vec<String>) -> Self {
        Self { scale: Scale::Named(names), ..Self::linear(label, "") }
    }

    /// Label and unit.
    pub fn caption(&self) -> String {
        match (self.label.as_str(), self.unit.as_str()) {
            (only, "") | ("", only) => only.to_owned(),
            (label, unit) => format!("{label}, {unit}"),
        }
    }

    /// What stands at a value of the axis.
    pub(crate) fn tick(&self, value: f64) -> String {
        match &self.scale {
            Scale::Named(names) => names.get(value as usize).cloned().unwrap_or_default(),
            _ if value.fract() == 0.0 && value.abs() < 10_000.0 => format!("{value:.0}"),
            _ => crate::brief(value),
        }
    }
}

impl From<&str> for Axis {
    fn from(label: &str) -> Self {
        Self::linear(label, "")
    }
}

impl Line {
    /// A line of numbers without spread.
    pub fn exact(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let point = |(x, y)| Point { x, datum: Datum::Number(Interval::exact(y)) };
        Self { name: name.into(), points: points.into_iter().map(point).collect() }
    }

    /// The points that are numbers.
    pub fn numbers(&self) -> impl Iterator<Item = (f64, Interval)> {
        self.points.iter().filter_map(|point| Some((point.x, point.datum.number()?)))
    }

    /// What was found at a place of the horizontal axis.
    pub fn at(&self, x: f64) -> Option<&Datum> {
        self.points.iter().find(|point| point.x == x).map(|point| &point.datum)
    }
}

impl Datum {
    /// The number; `None` for what must not be compared.
    pub fn number(&self) -> Option<Interval> {
        match self {
            Self::Number(interval) => Some(*interval),
            _ => None,
        }
    }

    /// Why there is no number.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Number(_) => None,
            Self::Unfair(why) | Self::Failed(why) | Self::Cannot(why) => Some(why),
        }
    }

    /// What stands in a cell instead of a number.
    pub(crate) const fn sign(&self) -> &'static str {
        match self {
            Self::Number(_) => "",
            Self::Unfair(_) | Self::Failed(_) => "×",
            Self::Cannot(_) => "cannot",
        }
    }
}

impl Published {
    /// A single value.
    pub fn point(x: f64, y: f64, name: impl Into<String>) -> Self {
        Self { name: name.into(), points: vec![(x, y)] }
    }
}

impl Figure {
    /// All places on the horizontal axis, in order.
    pub(crate) fn xs(&self) -> Vec<f64> {
        let ours = self.lines.iter().flat_map(|line| line.points.iter().map(|point| point.x));
        let published = self.published.iter().flat_map(|line| line.points.iter().map(|point| point.0));
        let mut xs: Vec<f64> = ours.chain(published).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        xs
    }

    /// Where there is no number, and why: one sentence for places of a line that have the same reason.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<(String, Vec<String>, &str)> = Vec::new();
        for line in &self.lines {
            for point in &line.points {
                let Some(why) = point.datum.reason() else { continue };
                let what = format!("{} {}", point.datum.sign(), line.name);
                let x = self.x.tick(point.x);
                match reasons.last_mut() {
                    Some((last, places, reason)) if *last == what && *reason == why => places.push(x),
                    _ => reasons.push((what, vec![x], why)),
                }
            }
        }
        let sentence = |(what, places, why): (String, Vec<String>, &str)| {
            format!("{what} at {}: {why}", places.join(", "))
        };
        reasons.into_iter().map(sentence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_with_the_same_reason_share_a_sentence() {
        let cannot = |x| Point { x, datum: Datum::Cannot("it is not installed".into()) };
        let unfair = Point { x: 3.0, datum: Datum::Unfair("one client starved".into()) };
        let line = Line { name: "caddy".into(), points: vec![cannot(1.0), cannot(2.0), unfair] };
        let figure = Figure { lines: vec![line], ..Figure::default() };
        assert_eq!(
            figure.reasons(),
            ["cannot caddy at 1, 2: it is not installed", "× caddy at 3: one client starved"]
        );
    }
}
