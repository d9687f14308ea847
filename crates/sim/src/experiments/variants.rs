//! LARD/H with fewer mechanisms, against LARD/R and bounded hashing.

use baton_dispatch::PolicyName::{BoundedHash, LardH, LardR};
use baton_dispatch::Variant;

use super::Lab;
use super::ours::{contest, fail_and_recover, four_front_ends, gain, workloads};
use crate::model::Scenario;
use crate::report::{Figure, Line, Report};

const VARIANTS: [(Variant, &str); 5] = [
    (Variant::Homes, "lard-r with homes"),
    (Variant::Mapped, "no picture of memory"),
    (Variant::Picture, "picture, all kept"),
    (Variant::Choice, "picture, always choosing"),
    (Variant::Duel, "picture and duel"),
];

/// A row for each trace: what each variant gains over LARD/R and over bounded hashing.
pub(super) fn variants(lab: &mut Lab<'_>, mut report: Report) -> Report {
    report
        .words
        .push(format!("Gain over lard-r / bounded-hash in percent; medians of {} seeds.", lab.seeds()));
    let nothing: fn(&mut Scenario) = |_| ();
    let both: fn(&mut Scenario) = |scenario| {
        four_front_ends(scenario);
        fail_and_recover(scenario);
    };
    for (title, change) in [
        ("one front-end", nothing),
        ("four front-ends", four_front_ends),
        ("one front-end, a failure", fail_and_recover),
        ("four front-ends, a failure", both),
    ] {
        let plain = [LardR, BoundedHash].map(|policy| Scenario::published(policy, 8));
        let ours = VARIANTS.map(|(variant, _)| {
            let policy = if variant == Variant::Homes { LardR } else { LardH };
            let mut scenario = Scenario::published(policy, 8);
            scenario.settings.variant = variant;
            scenario
        });
        let mut contestants: Vec<Scenario> = plain.into_iter().chain(ours).collect();
        contestants.iter_mut().for_each(change);
        let results = contest(lab, title, &contestants);
        report.words.push(format!("| {title} | {} |", VARIANTS.map(|(_, name)| name).join(" | ")));
        for ((_, trace, _), by_seed) in workloads().into_iter().zip(&results) {
            let cell = |at: usize| {
                let [lard_r, bounded] = [0, 1].map(|other| gain(by_seed, at, other)[1]);
                format!(" {lard_r:+.1} / {bounded:+.1} |")
            };
            report.words.push(format!("| {trace} |{}", (2..contestants.len()).map(cell).collect::<String>()));
        }
        let line = |(at, (_, name)): (usize, &(Variant, &str))| Line {
            name: (*name).into(),
            points: results
                .iter()
                .enumerate()
                .map(|(x, runs)| (x as f64, gain(runs, at + 2, 0)[1]))
                .collect(),
        };
        report.figures.push(Figure {
            name: format!("variants-{}", report.figures.len()),
            title: format!("Variants of lard-h, {title}"),
            y: "gain over lard-r, %".into(),
            x_names: workloads().map(|(_, name, _)| name.to_owned()).to_vec(),
            lines: VARIANTS.iter().enumerate().map(line).collect(),
            ..Figure::default()
        });
        report.runs.extend(results.into_iter().flatten().flatten());
    }
    report
}
