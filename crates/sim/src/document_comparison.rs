//! Sites of documents that migrate, over numbers of servers.

use baton_figures::{Claim, Figure, Line, Report, brief};

use crate::documents::{DocumentOutcome, DocumentScenario, DocumentSite, HotPage, simulate};
use crate::report::SimulationReport;
use crate::runner::Runner;

/// Runs each site with each number of servers, at least one: as it is, and with a page that becomes hot.
#[must_use]
pub fn compare_documents(
    runner: Runner<'_>,
    sites: &[DocumentSite],
    scenario: &DocumentScenario,
    servers: &[usize],
    hot: Option<HotPage>,
) -> SimulationReport {
    let each = |servers, hot| DocumentScenario { servers, hot, ..scenario.clone() };
    let variants: Vec<Option<HotPage>> = std::iter::once(None).chain(hot.map(Some)).collect();
    let mut todo: Vec<(&DocumentSite, DocumentScenario)> = Vec::new();
    for &hot in &variants {
        for site in sites {
            todo.extend(servers.iter().map(|&servers| (site, each(servers, hot))));
        }
    }
    let outcomes = runner.each(
        "documents",
        &todo,
        |(_, scenario)| scenario.seconds,
        |(site, scenario), so_far| simulate(scenario, site, so_far),
    );
    let runs_each = servers.len().max(1);
    let (calm, heated) = outcomes.split_at(sites.len() * runs_each);
    let mut figures = Vec::new();
    for (suffix, title, runs) in [("", "", calm), ("-hot", ", a page becomes hot", heated)] {
        if !runs.is_empty() {
            figures.extend(figures_of(suffix, title, runs, runs_each));
        }
    }
    let findings = Report {
        name: "documents".into(),
        title: "documents that migrate between servers".into(),
        words: sites.iter().map(describe).collect(),
        figures,
        claims: claims(calm, runs_each),
        ..Report::default()
    };
    SimulationReport { findings, documents: outcomes, ..SimulationReport::default() }
}

fn describe(site: &DocumentSite) -> String {
    let facts = site.facts();
    let pages = match facts.embedded_most {
        0 => "pages embed nothing".to_owned(),
        1 => "no object is embedded by two pages".to_owned(),
        most => format!("one object is embedded by {most} pages"),
    };
    format!(
        "{}: {} documents, {} entry {}, {} links, {} KB; {pages}.",
        site.name,
        brief(facts.documents as f64),
        facts.entry_points,
        if facts.entry_points == 1 { "point" } else { "points" },
        brief(facts.links as f64),
        brief((facts.bytes / 1024) as f64)
    )
}

fn figures_of(suffix: &str, title: &str, runs: &[DocumentOutcome], runs_each: usize) -> Vec<Figure> {
    let figure =
        |name: &str, what: &str, y: &str, value: &dyn Fn(&DocumentOutcome, &DocumentOutcome) -> f64| {
            let line = |outcomes: &[DocumentOutcome]| {
                Line::exact(
                    outcomes[0].site.clone(),
                    outcomes.iter().map(|outcome| (outcome.servers as f64, value(outcome, &outcomes[0]))),
                )
            };
            Figure {
                name: format!("documents-{name}{suffix}"),
                title: format!("{what}{title}"),
                x: "servers".into(),
                y: y.into(),
                lines: runs.chunks(runs_each).map(line).collect(),
                ..Figure::default()
            }
        };
    vec![
        figure("throughput", "Throughput", "connections/s", &|run, _| run.connections_per_s),
        figure("bytes", "Throughput in bytes", "MB/s", &|run, _| run.mbytes_per_s),
        figure("speed-up", "Speed-up", "times the first", &speed_up),
        figure("settling", "Until throughput settles", "s", &|run, _| run.settled_s),
        figure("migrations", "Documents sent to peers", "times", &|run, _| run.migrations as f64),
        figure("recalls", "Documents called back", "times", &|run, _| run.recalls as f64),
        figure("redirects", "Redirects", "% of answers", &|run, _| 100.0 * run.redirected),
        figure("refusals", "Connections turned away", "% of attempts", &|run, _| 100.0 * run.refused),
        figure("home", "Sent by the home server", "% of documents", &|run, _| 100.0 * run.home_share),
        figure("hottest", "The hottest document", "% of documents", &|run, _| 100.0 * run.hottest),
        figure("busiest", "The busiest server", "times the mean", &|run, _| run.busiest),
    ]
}

fn speed_up(run: &DocumentOutcome, first: &DocumentOutcome) -> f64 {
    run.connections_per_s / first.connections_per_s.max(f64::MIN_POSITIVE)
}

const NOT_SETTLED: &str =
    "one document moves per interval: a run that ends before all have moved tells how fast they move";

/// The published shape, for those of its sites that have run with one server and with most.
fn claims(calm: &[DocumentOutcome], runs_each: usize) -> Vec<Claim> {
    let of = |site: &str| {
        let runs = calm.chunks(runs_each).find(|runs| runs[0].site == site)?;
        let (first, last) = (runs.first()?, runs.last()?);
        (first.servers == 1 && last.servers > 1).then(|| (last.servers as f64, speed_up(last, first)))
    };
    let mut claims = Vec::new();
    let even = of("lod");
    if let Some((servers, gain)) = even {
        claims.push(Claim::new(
            "lod, without hot documents: nearly linear in the number of servers",
            format!("{} times with {servers} servers", brief(gain)),
            gain > 0.8 * servers,
            NOT_SETTLED,
        ));
    }
    for site in ["mapug", "sblog"] {
        if let (Some((_, even)), Some((servers, gain))) = (even, of(site)) {
            claims.push(Claim::new(
                &format!("{site}, with images that all pages embed: less than lod"),
                format!("{} times with {servers} servers, lod {} times", brief(gain), brief(even)),
                gain < even,
                NOT_SETTLED,
            ));
        }
    }
    claims
}
