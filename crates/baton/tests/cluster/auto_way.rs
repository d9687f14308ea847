//! `way = "auto"`: connections are handed over where that costs less than relaying. Over real hosts, with curl.

use std::fs;

use baton_lab::network::{ClusterHosts, Network};

use crate::common::folder::pattern;
use crate::front::logged;
use crate::handoff::{Cluster, ways};

/// Bytes that cost far more to relay than a hand-off does, whatever build this is.
const LARGE_BYTES: usize = 16 << 20;

const RELAYED: (&str, &str) = ("complete", "relay");
const HANDED_OVER: (&str, &str) = ("handed-over", "handoff");

fn cluster() -> Cluster {
    let cluster = Cluster::new("stay", "auto");
    for node in &cluster.nodes {
        node.folder().write("large.bin", pattern(LARGE_BYTES, 3));
    }
    cluster
}

/// Fetches this with a connection of its own, and counts its bytes.
fn fetch(cluster: &Cluster, path: &str) -> usize {
    let mut curl = cluster.hosts.client.command("curl");
    let url = format!("http://{}{path}", ClusterHosts::VIP_V4);
    let output =
        curl.args(["-sS", "--max-time", "30", "-H", "Connection: close", &url]).output().expect("curl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout.len()
}

fn ways_of(cluster: &Cluster, path: &str, count: usize) -> Vec<(String, String)> {
    logged(&cluster.front, path, count);
    ways(&cluster.front, path)
}

fn owned((outcome, way): (&str, &str)) -> (String, String) {
    (outcome.to_owned(), way.to_owned())
}

/// Goal: the front-end learns the size of a target from its first answer; then a large one goes with its connection, and a
/// small one is relayed, each time.
#[test]
fn a_large_answer_is_handed_over_and_a_small_one_relayed() {
    if Network::is_left_out() {
        return;
    }
    let cluster = cluster();
    for _ in 0..3 {
        assert_eq!(fetch(&cluster, "/1.txt"), "file 1".len());
        assert_eq!(fetch(&cluster, "/large.bin"), LARGE_BYTES);
    }
    assert_eq!(ways_of(&cluster, "/1.txt", 3), vec![owned(RELAYED); 3]);
    assert_eq!(ways_of(&cluster, "/large.bin", 3), [RELAYED, HANDED_OVER, HANDED_OVER].map(owned));
    let why = |path: &str| cluster.front.ctl(&["cluster", "why", path]);
    assert!(why("/large.bin").contains("handoff, a hand-off costs less"), "{}", why("/large.bin"));
    assert!(why("/1.txt").contains("relay, relaying costs less"), "{}", why("/1.txt"));
    let said = cluster.front.ctl(&["cluster"]);
    assert!(said.contains("relaying costs ") && said.contains("`auto` hands over from "), "{said}");
}

/// Goal: a kept connection with small requests is relayed at first, and moves once that has cost as much as moving. Method: the
/// front-end logs what it has had, the node the rest; the client uses one connection.
#[test]
fn a_kept_connection_moves_behind_a_few_requests() {
    if Network::is_left_out() {
        return;
    }
    let cluster = cluster();
    fetch(&cluster, "/0.txt");
    let answers = cluster.curl(&(0..40).collect::<Vec<_>>());
    assert!(answers.iter().enumerate().all(|(file, one)| one.0 == format!("file {file}")), "{answers:?}");
    assert_eq!(answers.iter().map(|one| one.2).sum::<u32>(), 1, "one connection: {answers:?}");
    assert_eq!(ways_of(&cluster, "/0.txt", 2), vec![owned(RELAYED); 2]);
    let log = fs::read_to_string(cluster.front.folder().base().join("access.log")).expect("a log");
    let seen_here = (1..40).filter(|file| log.contains(&format!(" /{file}.txt "))).count();
    assert!((1..39).contains(&seen_here), "{seen_here} of 39");
    assert_eq!(ways_of(&cluster, &format!("/{seen_here}.txt"), 1), [owned(HANDED_OVER)], "the last one here");
}
