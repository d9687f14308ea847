//! Goal: documents that migrate have the published shape: nearly linear throughput where no document is hot, and less where one
//! is. Method: small sites and short intervals, within bounds that no seed breaks. `baton sim documents` shows the published
//! sites.

use baton_dispatch::migration::LoadMetric;
use baton_sim::compare_documents;
use baton_sim::documents::{DocumentOutcome, DocumentScenario, HotPage, SiteParameters};
use baton_sim::report::SimulationReport;
use baton_sim::runner::Runner;

fn run(
    made: &[SiteParameters],
    servers: &[usize],
    hot: Option<f64>,
    set: &str,
    metric: LoadMetric,
) -> SimulationReport {
    let mut scenario = DocumentScenario { seconds: 600, ..DocumentScenario::published() };
    scenario.set("statistics_s=1,ping_s=2,peer_s=4,recall_s=30").unwrap();
    scenario.set(set).unwrap();
    scenario.migration.metric = metric;
    let sites: Vec<_> = made.iter().map(|made| made.site("site", 1)).collect();
    let hot = hot.map(|share| HotPage { share });
    compare_documents(Runner::new(2, &|_, _| ()), &sites, &scenario, servers, hot)
}

fn gain(runs: &[DocumentOutcome]) -> f64 {
    let [first, .., last] = runs else { panic!("several numbers of servers") };
    last.connections_per_s / first.connections_per_s
}

const EVEN: SiteParameters = SiteParameters {
    pages: 60,
    entries: 1,
    links: 6,
    page_kb: 2.0,
    images: 2,
    image_kb: 2.0,
    shared: 0,
    files: 0,
    file_kb: 1.0,
};

#[test]
fn an_even_site_gains_nearly_what_servers_there_are() {
    let report = run(&[EVEN], &[1, 2, 4], None, "", LoadMetric::Requests);
    let [one, two, four] = &report.documents[..] else { panic!("three runs") };
    assert!(two.connections_per_s > 1.8 * one.connections_per_s);
    assert!(four.connections_per_s > 3.5 * one.connections_per_s);
    assert!(four.busiest < 1.3 && four.migrations > 50 && four.settled_s > 60.0, "{four:?}");
    assert_eq!((one.migrations, one.redirected, one.settled_s), (0, 0.0, 0.0));
}

/// Walks of one page and an image that all pages share: half of all requests are for a document that one server has.
#[test]
fn a_hot_document_bounds_the_gain() {
    let hot = SiteParameters { images: 0, shared: 1, ..EVEN };
    let entries = SiteParameters { entries: 60, images: 0, ..EVEN };
    for (made, bound) in [(hot, 3.1), (entries, 1.01)] {
        let report = run(&[made], &[1, 8], None, "steps=2", LoadMetric::Requests);
        let gain = gain(&report.documents);
        assert!(gain < bound && gain > 0.99, "{gain} of {bound}: {:?}", report.documents);
        let hottest = report.documents[1].hottest;
        assert!(gain < 1.2 / hottest, "{gain} with {hottest}");
    }
}

/// Where files are large, a home server that counts connections keeps a list and gives all files away.
#[test]
fn large_files_need_bytes() {
    let files = SiteParameters { pages: 1, images: 0, files: 40, file_kb: 400.0, ..EVEN };
    let [bytes, connections] = [LoadMetric::Bytes, LoadMetric::Requests]
        .map(|metric| gain(&run(&[files], &[1, 2], None, "", metric).documents));
    assert!(bytes > 1.3 * connections && bytes > 1.6, "{bytes} {connections}");
}

/// A page becomes hot: those who come by its old address are redirected, and throughput recovers.
#[test]
fn a_page_that_becomes_hot_is_served() {
    let report = run(&[EVEN], &[1, 4], Some(1.0), "", LoadMetric::Requests);
    let [_, calm, _, hot] = &report.documents[..] else { panic!("four runs") };
    assert!(hot.redirected > 2.0 * calm.redirected, "{} {}", hot.redirected, calm.redirected);
    assert!(hot.connections_per_s > 0.75 * calm.connections_per_s);
    assert_eq!((calm.hot_share, hot.hot_share), (0.0, 1.0));
}

/// The published shape is told of the published sites alone, and told truly: a run of ten minutes ends too soon.
#[test]
fn claims_are_held_against_the_numbers() {
    assert!(run(&[EVEN], &[1, 2], None, "", LoadMetric::Requests).findings.claims.is_empty());
    let scenario = DocumentScenario { seconds: 600, ..DocumentScenario::published() };
    let sites = ["lod", "sblog"].map(|name| SiteParameters::named(name).unwrap().site(name, 1));
    let report = compare_documents(Runner::new(2, &|_, _| ()), &sites, &scenario, &[1, 8], None);
    let [lod, sblog] = &report.findings.claims[..] else { panic!("{:?}", report.findings.claims) };
    assert!(!lod.holds() && lod.verdict.reason().contains("one document moves per interval"), "{lod:?}");
    assert!(sblog.published.starts_with("sblog"));
}
