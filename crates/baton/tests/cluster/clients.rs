//! Clients whose connections are handed over: many at once, through the drain of their node; and those that people use, none of
//! which know of it.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;

use baton_lab::network::{ClusterHosts, Network};

use crate::architectures::under_every_architecture;
use crate::common::client::{Client, Response};
use crate::common::descriptors::raise_descriptors;
use crate::common::folder::pattern;
use crate::common::server::wait_until;
use crate::front::FILES;
use crate::handoff::{Cluster, LONG_BYTES, ways};

/// Kept connections; more by hand: `CONNECTIONS=10000`.
const CONNECTIONS: usize = 300;

/// Of so many connections one asks on while its node drains.
const BUSY_EACH: usize = 10;

/// A file from the node that has the connection, which says its name.
pub(crate) fn long_file(client: &mut Client, file: usize) -> String {
    let response: Response = client.get(&format!("/{file}.bin"));
    assert_eq!(response.status, 200, "{response:?}");
    assert!(response.body == pattern(LONG_BYTES, file as u64), "{file}: other bytes");
    response.field("x-node").expect("a node").to_owned()
}

/// Goal: kept connections move in mid-life, from the front-end to nodes, and from a node that drains to the other one, and none
/// is closed. Method: each asks the front-end, then a node; some ask on while one node drains and ends; then all ask again, and
/// each body is compared.
#[test]
fn kept_connections_live_through_the_drain_of_their_node() {
    let count = std::env::var("CONNECTIONS").map_or(CONNECTIONS, |count| count.parse().expect("a number"));
    live_through_a_drain("auto", count);
}

/// The same under every architecture, with as many clients as those have that take a process for each.
fn a_drain_closes_no_connection(architecture: &str) {
    live_through_a_drain(architecture, 3);
}

under_every_architecture!(by name: a_drain_closes_no_connection);

fn live_through_a_drain(architecture: &str, count: usize) {
    if Network::is_left_out() {
        return;
    }
    raise_descriptors(4 * count as u64 + 1_000);
    let mut cluster = Cluster::under(architecture, "stay", "handoff");
    let address = (ClusterHosts::VIP_V4, 80).into();
    let mut clients: Vec<_> =
        cluster.hosts.client.run(|| (0..count).map(|_| Client::connect(address)).collect());
    for client in &mut clients {
        assert_eq!(client.get("/here").text(), "here");
    }
    let mut of_nodes = [0, 0];
    for (number, client) in clients.iter_mut().enumerate() {
        of_nodes[usize::from(long_file(client, number % FILES) == "n1")] += 1;
    }
    let (drained, other) = if of_nodes[0] > of_nodes[1] { (0, "n1") } else { (1, "n0") };

    // Only new requests: what is there leaves with its node.
    cluster.front.ctl(&["drain-origin", &format!("http://{}", cluster.hosts.nodes[drained].v4())]);
    let busy = &mut clients[..count.div_ceil(BUSY_EACH)];
    let has_ended = AtomicBool::new(false);
    let asked: usize = scope(|scope| {
        let asking = scope.spawn(|| {
            let mut asked = 0;
            while !has_ended.load(Ordering::Acquire) {
                for client in &mut *busy {
                    long_file(client, asked % FILES);
                    asked += 1;
                }
            }
            asked
        });
        cluster.nodes[drained].ctl(&["drain"]);
        let ended = cluster.nodes[drained].ended();
        has_ended.store(true, Ordering::Release);
        assert!(ended.success(), "{ended}");
        asking.join().expect("no request fails")
    });
    assert!(asked >= busy.len());
    wait_until("all are at the other node", || {
        // On a busy machine a node may be late, and the request is relayed.
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(long_file(client, (number + 1) % FILES), other);
        }
        let status: serde_json::Value = cluster.front.status();
        status["mover"]["connections_at_nodes"].as_u64() == Some(count as u64)
    });
}

fn said(mut command: Command) -> String {
    let output = command.output().expect("a client");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

/// Goal: load generators and a browser get all they ask for by hand-off.
#[test]
fn programs_that_know_nothing_of_it() {
    if Network::is_left_out() {
        return;
    }
    let cluster = Cluster::new("stay", "handoff");
    let url = format!("http://{}", ClusterHosts::VIP_V4);
    let client = &cluster.hosts.client;

    let mut h2load = client.command("h2load");
    h2load.args(["--h1", "-n", "3000", "-c", "30"]);
    h2load.args((0..10).map(|file| format!("{url}/{file}.bin")));
    let told = said(h2load);
    assert!(told.contains("3000 succeeded, 0 failed, 0 errored, 0 timeout"), "{told}");

    let mut wrk = client.command("wrk");
    wrk.args(["-t", "1", "-c", "20", "-d", "1s", &format!("{url}/20.bin")]);
    let told = said(wrk);
    assert!(
        told.contains("requests in") && !told.contains("Socket errors") && !told.contains("Non-2xx"),
        "{told}"
    );

    let page = "<!doctype html><title>moved</title><script src=1.js></script><img src=2.bin>";
    for node in &cluster.nodes {
        node.folder().write("page.html", page).write("1.js", "document.write('a script of a node')");
    }
    let profile = cluster.front.folder().base().join("profile");
    let mut chromium = client.command("chromium");
    chromium.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
    ]);
    chromium.args(["--disable-background-networking", "--disable-component-update", "--dump-dom"]);
    chromium.arg(format!("--user-data-dir={}", profile.display())).arg(format!("{url}/page.html"));
    let shown = said(chromium);
    assert!(shown.contains("a script of a node") && shown.contains("<title>moved</title>"), "{shown}");
    // A single request may be relayed, where a node is late.
    for paths in [&["/0.bin", "/1.bin"][..], &["/20.bin"], &["/page.html", "/1.js", "/2.bin"]] {
        let is_handed_off = |path: &&str| ways(&cluster.front, path).iter().any(|way| way.0 == "handed-over");
        assert!(paths.iter().any(is_handed_off), "{paths:?}");
    }
}
