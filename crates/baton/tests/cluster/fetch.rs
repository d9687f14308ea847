//! Kept connections at nodes that fetch: a file that is not in the node's memory comes from its home, which the client does not
//! notice, whatever happens to the home.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

use baton_lab::network::{ClusterHosts, Network};
use rustix::net::{Shutdown, shutdown};
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::architectures::under_every_architecture;
use crate::common::client::{Client, Response};
use crate::common::folder::pattern;
use crate::common::server::{Server, wait_until};
use crate::front::{FILES, logged};
use crate::handoff::{Cluster, LONG_BYTES};

/// All files were changed then: long ago.
const CHANGED_S: u64 = 1_600_000_000;
const CHANGED: &str = "Sun, 13 Sep 2020 12:26:40 GMT";

/// The tag of each long file: its length and its date.
const TAG: &str = "\"4e20-5f5e1000-0\"";

/// A cluster whose nodes have the same files of the same date.
fn cluster(architecture: &str, kept: &str) -> Cluster {
    let cluster = Cluster::under(architecture, kept, "handoff");
    for node in &cluster.nodes {
        for file in 0..FILES {
            node.folder().date(&format!("{file}.txt"), CHANGED_S).date(&format!("{file}.bin"), CHANGED_S);
        }
    }
    cluster
}

/// A cluster whose nodes fetch, and a client whose connection node 0 has; `None`: this machine cannot have one.
fn fetching() -> Option<(Cluster, Homes, Client)> {
    if Network::is_left_out() {
        return None;
    }
    let cluster = cluster("auto", "fetch");
    let homes = Homes::of(&cluster);
    let client = homes.client(&cluster);
    Some((cluster, homes, client))
}

/// The same, and node 1 is dead: a [`FakeHome`] can take its place.
fn fetching_from_the_dead() -> Option<(Cluster, Homes, Client)> {
    let (mut cluster, homes, client) = fetching()?;
    kill_second_node(&mut cluster);
    Some((cluster, homes, client))
}

/// Where files are at home.
struct Homes {
    /// The number of a `.txt` of node 0.
    own: usize,
    /// The numbers of all `.bin` of node 1.
    other: Vec<usize>,
}

impl Homes {
    fn of(cluster: &Cluster) -> Self {
        let node = &cluster.nodes[0];
        let is_other = |path: &str| home(node, path).as_deref() == Some("n1");
        Self {
            own: (0..FILES).find(|file| !is_other(&format!("/{file}.txt"))).expect("a file"),
            other: (0..FILES).filter(|file| is_other(&format!("/{file}.bin"))).collect(),
        }
    }

    /// A client whose connection node 0 has.
    fn client(&self, cluster: &Cluster) -> Client {
        let address = (ClusterHosts::VIP_V4, 80).into();
        let mut client = cluster.hosts.client.run(|| Client::connect(address));
        let response = client.get(&format!("/{}.txt", self.own));
        assert_eq!(response.field("x-node"), Some("n0"), "the front-end and the nodes agree on homes");
        client
    }
}

/// The home of a path, as a node says; `None`: the node itself.
fn home(node: &Server, path: &str) -> Option<String> {
    told(node, path)["home"].as_str().map(str::to_owned)
}

/// What a node would do with a request for a path on a connection that was handed over.
fn told(node: &Server, path: &str) -> Value {
    serde_json::from_str(&node.ctl(&["--json", "cluster", "why", path])).expect("JSON")
}

/// What a node's log says of where the answers to the requests for a path came from: the node and the way, or nothing.
fn sources(node: &Server, path: &str, count: usize) -> Vec<String> {
    let source = |line: &Value| {
        let word = |key: &str| line["origin"][key].as_str().unwrap_or("-").to_owned();
        [word("node"), word("way"), word("failure")].join(" ")
    };
    logged(node, path, count).iter().map(source).collect()
}

fn is_whole(response: &Response, file: usize) {
    assert_eq!(response.status, 200, "{response:?}");
    assert!(response.body == pattern(LONG_BYTES, file as u64), "{file}: other bytes");
    assert_eq!(response.field("x-node"), Some("n0"), "the rules of the route hold here, once");
    assert_eq!(response.field("cache-control"), Some("no-transform"), "what a rule adds is there once");
}

/// Goal: every file comes, all on one connection; each is fetched from its home unless that is the node itself, which is the
/// node that the front-end chooses for it, too. The home serves what it is asked, and fetches nothing.
fn files_come_from_their_homes(architecture: &str) {
    if Network::is_left_out() {
        return;
    }
    let cluster = cluster(architecture, "fetch");
    let homes = Homes::of(&cluster);
    let of_other = &homes.other;
    assert!((1..FILES).contains(&of_other.len()), "{of_other:?}");
    let mut client = homes.client(&cluster);
    for file in 0..FILES {
        is_whole(&client.get(&format!("/{file}.bin")), file);
    }
    for file in 0..FILES {
        let path = format!("/{file}.bin");
        let is_fetched = of_other.contains(&file);
        let expected = if is_fetched { "n1 fetch -" } else { "- - -" };
        assert_eq!(sources(&cluster.nodes[0], &path, 1), [expected], "{path}");
        if is_fetched {
            assert_eq!(sources(&cluster.nodes[1], &path, 1), ["- - -"], "{path}");
        }
    }
    let status: Value = cluster.nodes[0].status();
    let nodes = status["cluster"]["nodes"].as_array().expect("nodes");
    let other = nodes.iter().find(|node| node["name"] == "n1").expect("a node");
    assert_eq!(other["ways"]["fetch"], of_other.len());
    assert!(cluster.nodes[0].ctl(&["cluster"]).contains("fetched from"));
    let (own, path) = (&cluster.nodes[0], format!("/{}.bin", of_other[0]));
    let said = own.ctl(&["cluster", "why", &path]);
    assert!(said.contains("home n1 at") && said.contains("fetched from there"), "{said}");
    let said = own.explain(&format!("http://front{path}"));
    assert!(said.contains("node n1 at http://") && said.contains("is asked for it"), "{said}");
}

under_every_architecture!(by name: files_come_from_their_homes);

/// Goal: what a client asks of a file besides its bytes, it gets from the home as it would get it from the node.
#[test]
fn ranges_conditions_and_heads_are_fetched() {
    let Some((cluster, homes, mut client)) = fetching() else { return };
    let file = homes.other[0];
    let (path, bytes) = (format!("/{file}.bin"), pattern(LONG_BYTES, file as u64));
    let whole = client.get(&path);
    is_whole(&whole, file);
    assert_eq!(whole.field("etag"), Some(TAG), "copies have the same");

    let part = client.ask("GET", &path, "Range: bytes=100-299\r\n");
    assert_eq!((part.status, part.field("content-range")), (206, Some("bytes 100-299/20000")));
    assert!(part.body == bytes[100..300]);
    let parts = client.ask("GET", &path, "Range: bytes=0-9,20-29\r\n");
    assert_eq!(parts.status, 206);
    assert!(parts.field("content-type").is_some_and(|kind| kind.starts_with("multipart/byteranges")));
    let head = client.ask("HEAD", &path, "");
    assert_eq!((head.status, head.field("content-length"), head.body.len()), (200, Some("20000"), 0));
    let unchanged = client.ask("GET", &path, &format!("If-None-Match: {TAG}\r\n"));
    assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
    let unchanged = client.ask("GET", &path, &format!("If-Modified-Since: {CHANGED}\r\n"));
    assert_eq!((unchanged.status, unchanged.field("x-node")), (304, Some("n0")));
    assert_eq!(sources(&cluster.nodes[0], &path, 6), ["n1 fetch -"; 6]);

    // The home has something else to say than the file: this node answers.
    let beyond = client.ask("GET", &path, "Range: bytes=20000-\r\n");
    assert_eq!((beyond.status, beyond.field("content-range")), (416, Some("bytes */20000")));
    let changed = client.ask("GET", &path, "If-Match: \"other\"\r\n");
    assert_eq!(changed.status, 412);
    assert_eq!(client.get("/none").status, 404);
    // What no file answers is not fetched.
    assert_eq!(client.ask("POST", &path, "Content-Length: 0\r\n").status, 405);
    assert_eq!(sources(&cluster.nodes[1], &path, 7).len(), 7, "once the node had read it, it asked no more");
    is_whole(&client.get(&path), file);
}

/// Goal: what a fetch takes counts if its home had the file in memory, for with a disk it says nothing of fetching; a home that refuses
/// counts as slow.
#[test]
fn only_what_a_home_had_in_memory_is_timed() {
    let Some((mut cluster, homes, mut client)) = fetching() else { return };
    let (file, refused) = (homes.other[0], homes.other[1]);
    let path = format!("/{file}.bin");
    let fetch_us = |node: &Server| told(node, &path)["fetch_us"].as_f64().expect("a time");
    let guessed = fetch_us(&cluster.nodes[0]);
    is_whole(&client.get(&path), file);
    assert_eq!(fetch_us(&cluster.nodes[0]), guessed, "the home has read it");
    wait_until("a fetch that took as long as nothing else", || {
        is_whole(&client.get(&path), file);
        fetch_us(&cluster.nodes[0]) != guessed
    });
    let known = fetch_us(&cluster.nodes[0]);
    kill_second_node(&mut cluster);
    let _home = FakeHome::begin(
        &cluster,
        "HTTP/1.1 403 \r\nCache-Status: baton; hit\r\nContent-Length: 0\r\n\r\n",
        b"",
    );
    is_whole(&client.get(&format!("/{refused}.bin")), refused);
    assert!(fetch_us(&cluster.nodes[0]) > known, "{known}");
}

/// Goal: a request that a node has fetched already is fetched by no other, and says so.
#[test]
fn no_request_is_fetched_twice() {
    let Some((mut cluster, homes, mut client)) = fetching() else { return };
    let file = homes.other[0];
    let path = format!("/{file}.bin");
    let read = client.ask("GET", &path, "CDN-Loop: other, baton-fetch\r\n");
    is_whole(&read, file);
    assert_eq!(read.field("cache-status"), None, "its disk took part of the time");
    assert_eq!(sources(&cluster.nodes[0], &path, 1), ["- - -"]);
    // It is in memory now, which another node is told.
    let sent = client.ask("GET", &path, "CDN-Loop: baton-fetch\r\n");
    is_whole(&sent, file);
    assert_eq!(sent.field("cache-status"), Some("baton; hit"));
    let sent = client.get(&path);
    is_whole(&sent, file);
    assert_eq!(sent.field("cache-status"), None);
    assert_eq!(sources(&cluster.nodes[0], &path, 3), ["- - -"; 3]);

    let file = homes.other[1];
    kill_second_node(&mut cluster);
    let home = FakeHome::begin(&cluster, "HTTP/1.1 500 \r\nContent-Length: 0\r\n\r\n", b"");
    is_whole(&client.ask("GET", &format!("/{file}.bin"), "CDN-Loop: other\r\n"), file);
    let asked = home.asked();
    assert!(asked.contains("CDN-Loop: other\r\n") && asked.contains("CDN-Loop: baton-fetch\r\n"), "{asked}");
}

/// Goal: the node answers itself where the home is dead, does not answer, or answers with something else; the log says why.
#[test]
fn a_home_that_fails_costs_no_answer() {
    let Some((mut cluster, homes, mut client)) = fetching() else { return };
    let mut files = homes.other.iter();
    let mut ask = |client: &mut Client| {
        let file = files.next().expect("a file");
        is_whole(&client.get(&format!("/{file}.bin")), *file);
        format!("/{file}.bin")
    };
    // It hangs: its kernel still takes connections.
    cluster.nodes[1]
        .workers()
        .into_iter()
        .for_each(|worker| kill_process(worker, Signal::STOP).expect("it runs"));
    let path = ask(&mut client);
    assert_eq!(sources(&cluster.nodes[0], &path, 1), ["n1 fetch head-timed-out"]);
    cluster.nodes[1]
        .workers()
        .into_iter()
        .for_each(|worker| kill_process(worker, Signal::CONT).expect("it runs"));
    kill_second_node(&mut cluster);
    // No part was asked for, and no client has the file.
    for (head, body) in [
        ("HTTP/1.1 503 \r\nContent-Length: 5\r\n\r\n", &b"other"[..]),
        ("HTTP/1.1 302 \r\nLocation: /\r\nContent-Length: 5\r\n\r\n", b"other"),
        ("HTTP/1.1 206 \r\nContent-Range: bytes 0-4/9\r\nContent-Length: 5\r\n\r\n", b"other"),
        ("HTTP/1.1 304 \r\n\r\n", b""),
    ] {
        let _home = FakeHome::begin(&cluster, head, body);
        let path = ask(&mut client);
        assert_eq!(sources(&cluster.nodes[0], &path, 1), ["n1 fetch -"]);
    }
    for (answer, failure) in
        [("no HTTP at all\r\n\r\n", "bad-response"), ("HTTP/1.1 200 \r\n", "ended-early")]
    {
        let _home = FakeHome::begin(&cluster, answer, b"");
        let path = ask(&mut client);
        assert_eq!(sources(&cluster.nodes[0], &path, 1), [format!("n1 fetch {failure}")]);
    }
    let path = ask(&mut client);
    assert_eq!(sources(&cluster.nodes[0], &path, 1), ["n1 fetch no-connection"]);
    // A home that an operator takes out is none.
    cluster.nodes[0].ctl(&["drain-origin", &format!("http://{}", cluster.hosts.nodes[1].v4())]);
    let path = ask(&mut client);
    assert_eq!(sources(&cluster.nodes[0], &path, 1), ["- - -"]);
}

/// Goal: an answer that is not the file's keeps no client waiting for its end. Method: bodies that never end, of which the home sends
/// little, or more than is read to keep a connection. If the node waited, its log would name the failure.
#[test]
fn a_body_that_is_not_wanted_is_not_waited_for() {
    let Some((cluster, homes, mut client)) = fetching_from_the_dead() else { return };
    for (file, bytes) in [(homes.other[0], 5), (homes.other[1], 1 << 20)] {
        let _home = FakeHome::holding(
            &cluster,
            "HTTP/1.1 503 \r\nContent-Length: 1000000000\r\n\r\n",
            &vec![b'x'; bytes],
        );
        is_whole(&client.get(&format!("/{file}.bin")), file);
        assert_eq!(sources(&cluster.nodes[0], &format!("/{file}.bin"), 1), ["n1 fetch -"]);
    }
}

/// Goal: no home gets a client's connection for another protocol: the node answers, as a server does that has only files.
#[test]
fn no_home_opens_a_tunnel() {
    let Some((cluster, homes, mut client)) = fetching_from_the_dead() else { return };
    let home = FakeHome::begin(
        &cluster,
        "HTTP/1.1 101 \r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"words of the home",
    );
    let path = format!("/{}.bin", homes.other[0]);
    is_whole(&client.ask("GET", &path, "Connection: upgrade\r\nUpgrade: websocket\r\n"), homes.other[0]);
    assert_eq!(sources(&cluster.nodes[0], &path, 1), ["- - -"]);
    assert_eq!(home.asked(), "");
}

/// Goal: a home that dies within an answer leaves the rest to the node, if both have the same file; else the client learns that
/// the answer is not whole.
#[test]
fn an_answer_that_breaks_off_is_completed() {
    let Some((cluster, homes, mut client)) = fetching_from_the_dead() else { return };
    let head = |status: &str, length: usize, more: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{more}\r\n")
    };
    let tagged = format!("ETag: {TAG}\r\n");
    let files = &homes.other;
    for (file, sent) in [(files[0], 1), (files[1], 10_000), (files[2], LONG_BYTES - 1)] {
        let bytes = pattern(LONG_BYTES, file as u64);
        let home = FakeHome::holding(&cluster, &head("200 OK", LONG_BYTES, &tagged), &bytes[..sent]);
        client.send(format!("GET /{file}.bin HTTP/1.1\r\nHost: front\r\n\r\n"));
        assert_eq!(client.head_of_response().status, 200);
        drop(home);
        assert!(client.take(LONG_BYTES) == bytes, "{sent} bytes of {file} came from its home");
        assert_eq!(sources(&cluster.nodes[0], &format!("/{file}.bin"), 1), ["n1 fetch ended-early"]);
    }
    let (file, range) = (files[3], format!("Content-Range: bytes 500-1499/{LONG_BYTES}\r\n{tagged}"));
    let bytes = pattern(LONG_BYTES, file as u64);
    let home = FakeHome::holding(&cluster, &head("206 Partial Content", 1_000, &range), &bytes[500..600]);
    client.send(format!("GET /{file}.bin HTTP/1.1\r\nHost: front\r\nRange: bytes=500-1499\r\n\r\n"));
    assert_eq!(client.head_of_response().status, 206);
    drop(home);
    assert!(client.take(1_000) == bytes[500..1_500]);
    for (file, more) in [(files[4], String::new()), (files[5], format!("ETag: W/{TAG}\r\n"))] {
        let home = FakeHome::holding(&cluster, &head("200 OK", LONG_BYTES, &more), b"others");
        let mut client = homes.client(&cluster);
        client.send(format!("GET /{file}.bin HTTP/1.1\r\nHost: front\r\n\r\n"));
        let head = client.head_of_response();
        assert_eq!((head.status, head.field("content-length")), (200, Some("20000")));
        drop(home);
        assert_eq!(client.rest(), b"others", "no byte of another file follows, and the connection ends");
    }
}

/// Goal: by default a node reads what it reads as fast, so that a connection is served by one node, as before.
#[test]
fn a_fast_disk_is_read() {
    if Network::is_left_out() {
        return;
    }
    let cluster = cluster("auto", "auto");
    let homes = Homes::of(&cluster);
    let file = homes.other[0];
    let mut client = homes.client(&cluster);
    for file in 0..FILES {
        is_whole(&client.get(&format!("/{file}.bin")), file);
    }
    let path = format!("/{file}.bin");
    assert_eq!(sources(&cluster.nodes[0], &path, 1), ["- - -"]);
    let said = cluster.nodes[0].ctl(&["cluster", "why", &path]);
    assert!(said.contains("home n1 at") && said.contains("read here"), "{said}");
}

fn kill_second_node(cluster: &mut Cluster) {
    cluster.nodes[1].signal(Signal::KILL);
    cluster.nodes[1].ended();
}

/// A server in the place of node 1, which is dead: it answers the first request of each connection with these bytes, and ends it.
struct FakeHome {
    listener: TcpListener,
    serving: Option<JoinHandle<String>>,
}

impl FakeHome {
    fn begin(cluster: &Cluster, head: &str, body: &[u8]) -> Self {
        Self::serving(cluster, [head.as_bytes(), body].concat(), false)
    }

    /// One that ends no connection before its own end.
    fn holding(cluster: &Cluster, head: &str, body: &[u8]) -> Self {
        Self::serving(cluster, [head.as_bytes(), body].concat(), true)
    }

    fn serving(cluster: &Cluster, answer: Vec<u8>, holds: bool) -> Self {
        let mut listener = None;
        wait_until("the port of node 1 is free", || {
            listener = cluster.hosts.nodes[1].run(|| TcpListener::bind("0.0.0.0:80").ok());
            listener.is_some()
        });
        let listener = listener.expect("a port");
        let own = listener.try_clone().expect("a descriptor");
        let serving = thread::spawn(move || {
            let (mut asked, mut held) = (String::new(), Vec::new());
            while let Ok((mut client, _)) = own.accept() {
                let mut request = Vec::new();
                let mut byte = [0];
                while !request.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|count| count == 1)
                {
                    request.push(byte[0]);
                }
                asked.push_str(&String::from_utf8_lossy(&request));
                // The node may have gone on without it.
                let _ = client.write_all(&answer);
                held.extend(Some(client).filter(|_| holds));
            }
            asked
        });
        Self { listener, serving: Some(serving) }
    }

    /// What it was asked.
    fn asked(mut self) -> String {
        self.stop()
    }

    fn stop(&mut self) -> String {
        let Some(serving) = self.serving.take() else { return String::new() };
        shutdown(&self.listener, Shutdown::Both).expect("it listens");
        serving.join().expect("no panic")
    }
}

impl Drop for FakeHome {
    fn drop(&mut self) {
        self.stop();
    }
}
