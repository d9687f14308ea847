//! What was measured, as lines and as tables.

use std::fmt::{self, Write as _};

use super::settings::FrontCostSettings;
use crate::contender::Contender;
use crate::markdown::{begin_table, failed_row, number, row};
use crate::stats::median;

/// One size through one front-end, measured once.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) contender: Contender,
    pub(super) round: usize,
    pub(super) size: u64,
    /// Over kept connections, not new ones.
    pub(super) kept: bool,
    pub(super) figures: Result<Figures, String>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) requests_per_second: f64,
    /// CPU time of the front-end's processes for a request.
    pub(super) front_us: f64,
    /// CPU time of all processes for a request.
    pub(super) all_us: f64,
    /// Bytes into and out of the front-end, as a multiple of those of the bodies.
    pub(super) front_share: f64,
    /// Latency of requests that come one after the other.
    pub(super) p50_us: f64,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connections = if self.kept { "kept" } else { "new" };
        write!(f, "{} {} {} {connections}: ", self.round + 1, self.contender, length(self.size))?;
        match &self.figures {
            Ok(it) => write!(
                f,
                "{:.0} requests/s, front-end {:.1} us, all {:.1} us, {:.2} of the bytes, p50 {:.0} us",
                it.requests_per_second, it.front_us, it.all_us, it.front_share, it.p50_us
            ),
            Err(why) => write!(f, "FAILED: {why}"),
        }
    }
}

/// A table for each kind of connection.
pub(super) fn markdown(
    machine: &str,
    settings: &FrontCostSettings,
    contenders: &[Contender],
    measured: &[Measured],
) -> String {
    let mut text = format!(
        "{machine}; all processes on one CPU. Medians of {} rounds of {} s; what a front-end adds is the median of differences \
         within a round; latencies are the least of the rounds' medians.\n",
        settings.rounds,
        settings.duration.as_secs_f64()
    );
    for kept in [true, false] {
        let _ = write!(text, "\n{} connections\n\n", if kept { "Kept" } else { "New" });
        begin_table(&mut text, "response, front-end", &COLUMNS);
        for &size in &settings.sizes {
            for &contender in contenders {
                let head = format!("{}, {contender}", length(size));
                let direct = cells(measured, contender.without_front(), size, kept);
                line(&mut text, &head, &cells(measured, contender, size, kept), &direct, size);
            }
        }
    }
    text
}

fn cells(measured: &[Measured], contender: Contender, size: u64, kept: bool) -> Vec<&Measured> {
    let is_one = |cell: &&Measured| (cell.contender, cell.size, cell.kept) == (contender, size, kept);
    measured.iter().filter(is_one).collect()
}

/// A row. `direct`: clients that ask a node directly.
fn line(text: &mut String, head: &str, cells: &[&Measured], direct: &[&Measured], size: u64) {
    let good = figures(cells);
    let direct = figures(direct);
    if good.is_empty() {
        let why = cells.iter().find_map(|cell| cell.figures.as_ref().err());
        return failed_row(text, head, why.map_or("not measured", String::as_str));
    }
    let middle = |of: &dyn Fn(&Figures) -> f64, digits| {
        let values: Vec<_> = good.iter().map(|(_, figures)| of(figures)).collect();
        number(median(&values), digits)
    };
    let added = |of: &dyn Fn(&Figures) -> f64| {
        let differences = good.iter().filter_map(|(round, figures)| {
            let (_, without) = direct.iter().find(|(other, _)| other == round)?;
            Some(of(figures) - of(without))
        });
        median(&differences.collect::<Vec<_>>())
    };
    let added_us = added(&|it| it.all_us);
    let fields = [
        middle(&|it| it.requests_per_second, 0),
        middle(&|it| it.front_us, 1),
        number(added_us, 1),
        number(added_us.map(|us| us / (size as f64 / 1e6)), 0),
        middle(&|it| it.front_share, 3),
        number(least(&good), 0),
        number(least(&good).zip(least(&direct)).map(|(with, without)| with - without), 0),
    ];
    row(text, head, &fields);
}

/// The least of the rounds' median latencies: other work on the machine only adds to it.
fn least(good: &[(usize, &Figures)]) -> Option<f64> {
    good.iter().map(|(_, figures)| figures.p50_us).min_by(f64::total_cmp)
}

/// Of the rounds that have any.
fn figures<'m>(cells: &[&'m Measured]) -> Vec<(usize, &'m Figures)> {
    cells.iter().filter_map(|cell| Some((cell.round, cell.figures.as_ref().ok()?))).collect()
}

/// `16 KB`, `1 MB`.
fn length(bytes: u64) -> String {
    match bytes {
        _ if bytes < 1 << 20 => format!("{} KB", bytes >> 10),
        _ => format!("{} MB", bytes >> 20),
    }
}

const COLUMNS: [&str; 7] = [
    "requests/s",
    "front-end's processes µs/request",
    "added CPU µs/request",
    "added µs/MB",
    "bytes there",
    "p50 µs",
    "added µs",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_front_end_adds_is_compared_within_a_round() {
        let cell = |contender, round, all_us, p50_us| {
            let figures =
                Figures { requests_per_second: 1.0, front_us: 30.0, all_us, front_share: 2.0, p50_us };
            Measured { contender, round, size: 1 << 20, kept: true, figures: Ok(figures) }
        };
        let measured = [
            cell(Contender::Direct, 0, 100.0, 50.0),
            cell(Contender::Relay, 0, 150.0, 90.0),
            cell(Contender::Direct, 1, 200.0, 150.0),
            cell(Contender::Relay, 1, 252.0, 192.0),
        ];
        let settings = FrontCostSettings {
            baton: "baton".into(),
            fronts: Vec::new(),
            sizes: vec![1 << 20],
            rounds: 2,
            duration: std::time::Duration::from_secs(1),
            folder: "folder".into(),
        };
        let text = markdown("a machine", &settings, &[Contender::Relay, Contender::Nginx], &measured);
        assert!(text.contains("| 1 MB, relay | 1 | 30.0 | 51.0 | 49 | 2.000 | 90 | 40 |"), "{text}");
        assert!(text.contains("| 1 MB, nginx | failed: not measured |"));
    }
}
