//! What a run has to tell: figures, comparisons with a reference, verdicts.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use baton_figures::{Axis, Figure, FigureKind, Line, Point, Published, Report, Scale};

use super::comparison::comparison;
use super::judge::judge;
use super::record::{self, CellRecord, Manifest};
use super::series::{Series, names};
use super::settings::RunSettings;
use crate::experiment::{Experiment, FigureText, Scalar};

/// The report of what is kept of an experiment so far.
///
/// # Errors
/// If nothing is kept.
pub fn report(experiment: &Experiment, settings: &RunSettings) -> Result<Report> {
    let (manifest, records) = record::read(&settings.results, &experiment.name).with_context(|| {
        format!("nothing is kept of {}: `baton-lab run {}`", experiment.name, experiment.name)
    })?;
    let others = settings.batons.get(1..).unwrap_or_default();
    Ok(of(&experiment.clone().with_builds(others), &manifest, &records))
}

/// The report of these lines.
pub(crate) fn of(experiment: &Experiment, manifest: &Manifest, records: &[CellRecord]) -> Report {
    let head = &experiment.head;
    let mut words: Vec<String> = head.about.iter().map(|text| text.trim().replace('\n', " ")).collect();
    words.extend(head.source.iter().map(|source| format!("Source: {source}.")));
    words.push(conditions(experiment, manifest, records));
    let mut report =
        Report { name: experiment.name.clone(), title: head.title.clone(), words, ..Report::default() };
    for text in &head.figure {
        let mut series = Series::of(experiment, text, records);
        report.tables.extend(comparison(experiment, text, &series));
        series.extend(beside(experiment, text, records));
        report.figures.push(figure(experiment, text, &series));
    }
    for (claim, statement) in head.claim.iter().zip(&experiment.claims) {
        let claim = claim.get_ref();
        if let Some(figure) = experiment.figure(claim.figure.as_ref()) {
            let series = Series::of(experiment, figure, records);
            report.claims.push(judge(&claim.text, statement, &series, claim.because.as_deref()));
        }
    }
    report
}

/// When, where and with what the lines were measured, and what disturbed them.
fn conditions(experiment: &Experiment, manifest: &Manifest, records: &[CellRecord]) -> String {
    let Manifest { machine, rounds, seconds, programs, load_average, settings, commit, started, .. } =
        manifest;
    let date = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(*started));
    // Without the day of the week and the time of day.
    let date = date.get(5..16).unwrap_or_default();
    let commit = if commit.is_empty() { String::new() } else { format!(", commit {commit}") };
    let mut text = format!(
        "`baton-lab run {}` on {date}{commit}: {machine}; {rounds} {} of {seconds} s, medians; load average \
         {load_average:.1} at the beginning",
        manifest.experiment,
        if *rounds == 1 { "round" } else { "rounds" }
    );
    let disturbed = records.iter().filter(|record| record.disturbed).count();
    if disturbed > 0 {
        text += &format!("; other processes disturbed {disturbed} of {} cells", records.len());
    }
    let programs: Vec<_> = programs
        .iter()
        .map(|program| {
            let mut words = program.version.split([' ', '/', '-', '(', ')']);
            let number =
                words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'));
            format!("{} ({} {})", program.name, number.unwrap_or_default(), &program.sha256[..8])
                .replace("( ", "(")
        })
        .collect();
    text += &format!(". {}.", programs.join(", "));
    if !settings.is_empty() {
        text += &format!(" With {}.", settings.join(", "));
    }
    if !manifest.is_of(experiment) {
        text += " The experiment's file has changed since.";
    }
    text
}

/// The lines of the quantity that is drawn beside the figure's own.
fn beside(experiment: &Experiment, text: &FigureText, records: &[CellRecord]) -> Vec<Series> {
    let Some(quantity) = text.beside else { return Vec::new() };
    let mut series = Series::of(experiment, &FigureText { y: quantity, ..text.clone() }, records);
    series.iter_mut().for_each(|series| series.line = format!("{}, {}", series.line, quantity.unit()));
    series
}

fn figure(experiment: &Experiment, text: &FigureText, series: &[Series]) -> Figure {
    let names = names(series);
    // An axis is one of numbers if all its values are.
    let numbers: Option<Vec<f64>> = names.iter().map(Scalar::number).collect();
    let place = |x: &Scalar| match &numbers {
        Some(_) => x.number().unwrap_or_default(),
        None => names.iter().position(|name| name == x).unwrap_or_default() as f64,
    };
    let line = |series: &Series| Line {
        name: series.line.clone(),
        points: series.points.iter().map(|(x, found)| Point { x: place(x), datum: found.datum() }).collect(),
    };
    let scale = match numbers {
        Some(_) => Scale::Linear,
        None => Scale::Named(names.iter().map(ToString::to_string).collect()),
    };
    let mut published: Vec<Published> = Vec::new();
    let is_ours = |named: Option<&toml::Spanned<String>>| {
        experiment.figure(named).is_some_and(|figure| figure.name == text.name)
    };
    for value in experiment.head.published.iter().filter(|value| is_ours(value.figure.as_ref())) {
        let name = format!("published: {}", value.line);
        let point = (place(&value.x), value.y);
        match published.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => published.push(Published { name, points: vec![point] }),
        }
    }
    if let Some(x) = &text.published_as {
        in_our_measure(&mut published, x, place(x), series);
    }
    Figure {
        name: format!("{}-{}", experiment.name, text.name),
        title: text.title.clone().unwrap_or_else(|| experiment.head.title.clone()),
        kind: if matches!(scale, Scale::Named(_)) { FigureKind::Bars } else { FigureKind::Lines },
        x: Axis { label: text.x.get_ref().clone(), unit: String::new(), scale },
        y: Axis::linear("", text.y.unit()),
        by: text.lines.get_ref().clone(),
        lines: series.iter().filter(|series| !series.points.is_empty()).map(line).collect(),
        published,
    }
}

/// Published values of another machine in our measure: the one at this place is ours there.
fn in_our_measure(published: &mut [Published], x: &Scalar, place: f64, series: &[Series]) {
    let ours = series.iter().find_map(|series| series.at(x)?.interval());
    for line in published {
        let theirs = line.points.iter().find(|(other, _)| *other == place).map(|(_, y)| *y);
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            line.name = format!("{}, {x} as ours", line.name);
            line.points.iter_mut().for_each(|(_, y)| *y *= ours.median / theirs);
        }
    }
}

/// In minutes from two on.
pub fn shown_duration(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::series::Found;

    #[test]
    fn published_values_are_drawn_in_our_measure() {
        let point = ("b".into(), Found::Rounds(vec![(0, 50.0)]));
        let series = [Series { line: "ours".into(), points: vec![point] }];
        let mut published = [Published { name: "theirs".into(), points: vec![(0.0, 300.0), (1.0, 100.0)] }];
        in_our_measure(&mut published, &"b".into(), 1.0, &series);
        assert_eq!(published[0].points, [(0.0, 150.0), (1.0, 50.0)]);
        assert_eq!(published[0].name, "theirs, b as ours");
    }
}
