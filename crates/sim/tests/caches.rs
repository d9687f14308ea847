//! Goal: simulated caches have the shapes of the studies on segments, and Baton's policy is ahead of S3-FIFO where sessions
//! break off. Method: some films and sessions, within bounds that no seed breaks. `baton sim cache` shows all figures.

use baton_segment::layout::Layout;
use baton_segment::policy::Aim;
use baton_sim::caching::{CacheOutcome, CacheScenario, Media, Workload};
use baton_sim::compare_caches;
use baton_sim::runner::Runner;
use baton_sim::trace::Zipf;

fn films() -> Workload {
    let media = Media { films: 200, sessions: 3000, kbit: 500.0, ..Media::default() };
    Workload::of_media(&media, 1)
}

fn run<const N: usize>(workload: &Workload, aim: Aim, policies: [&str; N], share: f64) -> [CacheOutcome; N] {
    let scenario = CacheScenario::new(Layout::BLOCK_BYTES_DEFAULT, aim, 1).unwrap();
    let parsed = policies.map(|policy| policy.parse().unwrap());
    let report = compare_caches(Runner::new(2, &|_, _| ()), workload, &scenario, &parsed, &[share]);
    assert_eq!(report.findings.figures.len(), 5);
    report.caches.try_into().unwrap()
}

/// Wu and others: segments are far ahead of whole objects, pyramids are no worse than equal segments, and first segments
/// that stay make delayed starts rare.
#[test]
fn segments_beat_whole_objects() {
    let films = films();
    for share in [0.03, 0.1] {
        let [pyramid, equal, whole, lru] =
            run(&films, Aim::Bytes, ["wu", "wu/uniform", "wu/whole", "lru"], share);
        // With so few films a large last segment weighs; with a thousand it is no less.
        assert!(pyramid.byte_hit_ratio() > 0.85 * equal.byte_hit_ratio());
        assert!(equal.byte_hit_ratio() > 1.2 * whole.byte_hit_ratio());
        assert!(whole.saved_ratio() < 0.0, "whole films are fetched for their first minutes");
        // In the smaller cache the share of first segments does not hold those of all films.
        let few = if share > 0.05 { 0.4 } else { 0.8 };
        assert!(pyramid.delayed_ratio() < few * lru.delayed_ratio());
        assert!(pyramid.delayed_ratio() < few * whole.delayed_ratio());
    }
}

/// Our own claim.
#[test]
fn reach_saves_more_than_s3_fifo_where_sessions_break_off() {
    let films = films();
    for (share, factor) in [(0.02, 1.15), (0.05, 1.05)] {
        let [reach, s3_fifo] = run(&films, Aim::Bytes, ["reach", "s3-fifo"], share);
        let (ours, theirs) = (reach.saved_ratio(), s3_fifo.saved_ratio());
        assert!(ours > factor * theirs, "{ours} for {theirs} with {share}");
        assert!(reach.delayed_ratio() < 0.8 * s3_fifo.delayed_ratio());
    }
}

/// And it loses nothing on a site of small files, for a disk or for memory.
#[test]
fn reach_keeps_sites_as_well() {
    let zipf = Zipf { targets: 10_000, alpha: 0.9, kb: 16.0, requests: 100_000 };
    let site = Workload::of_trace(&zipf.trace(1));
    let [reach, s3_fifo] = run(&site, Aim::Bytes, ["reach", "s3-fifo"], 0.05);
    assert!(reach.saved_ratio() > 0.98 * s3_fifo.saved_ratio());
    let [reach, s3_fifo, gds] = run(&site, Aim::Hits, ["reach", "s3-fifo", "gds"], 0.05);
    assert!(reach.hit_ratio() > s3_fifo.hit_ratio() && reach.hit_ratio() > gds.hit_ratio());
}
