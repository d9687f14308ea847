//! Clients that another process goes on with, on the connections that they have: one of the next server, or another worker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use crate::common::agent::{Agent, Body, CutOff};
use crate::common::client::Client;
use crate::common::folder::pattern;
use crate::common::matrix;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::supervised::{
    ANY_PORTS, admin_address, configure, folder, is_alive, pid, read, serving, start_in, status,
};

/// Upgrades under load; more by hand: `UPGRADES=100`.
const UPGRADES: usize = 5;

fn started(architecture: &str) -> Server {
    let folder = folder();
    configure(
        &folder,
        ANY_PORTS,
        "root",
        // A connection that has sent nothing is the server's at once, not only after seconds in the kernel.
        &format!(
            "architecture = \"{architecture}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[send]\ndefer_accept_s = 0"
        ),
    );
    start_in(folder)
}

/// What the current server counts.
pub(crate) fn counted(server: &Server, name: &str) -> u64 {
    let metrics = Client::connect(admin_address(server)).get("/metrics").text().to_owned();
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.expect("it is counted").parse().expect("a number")
}

/// Connections of each protocol: two have been used, one of them has half a request or the like underway, one is new.
struct Kept(Vec<(Protocol, Vec<Agent>)>);

const KEPT: u64 = 3 * Protocol::ALL.len() as u64;

impl Kept {
    fn connect(server: &Server, architecture: &str) -> Self {
        let connect = |protocol| {
            let mut agents: Vec<Agent> = (0..3).map(|_| server.over(protocol).agent()).collect();
            // A client of HTTP/2 acknowledges SETTINGS while it asks, and has not for ever.
            let used = if protocol.is_http2() { 3 } else { 2 };
            for agent in &mut agents[..used] {
                assert_eq!(agent.get("/").text(), "first", "{architecture}, {protocol:?}");
            }
            if let Agent::Http1(client) = &mut agents[1] {
                client.send("GET / HTTP/1.1\r\nHo");
            }
            (protocol, agents)
        };
        let kept = Self(Protocol::ALL.map(connect).into());
        wait_until("the server has them", || counted(server, "baton_connections_open") == KEPT);
        kept
    }

    /// All go on.
    fn go_on(&mut self, architecture: &str) {
        for (protocol, agents) in &mut self.0 {
            if let Agent::Http1(client) = &mut agents[1] {
                client.send("st: localhost\r\n\r\n");
                assert_eq!(client.response().text(), "first", "{architecture}, {protocol:?}");
            }
            for agent in agents {
                for _ in 0..2 {
                    assert_eq!(agent.get("/").text(), "first", "{architecture}, {protocol:?}");
                }
            }
        }
    }
}

/// Goal: an upgrade closes no connection between two requests. Method: clients with kept connections, some with half a
/// request, and some that have sent nothing yet, not even a handshake, go on with the new server where they were.
#[test]
fn kept_connections_go_on_with_the_new_server() {
    for architecture in matrix::architectures("kept_connections_go_on_with_the_new_server", &matrix::USUAL) {
        let mut server = started(architecture);
        let mut kept = Kept::connect(&server, architecture);
        server.ctl(&["upgrade"]);
        server.ended();
        wait_until("the new one has them", || counted(&server, "baton_connections_taken_over_total") == KEPT);
        kept.go_on(architecture);
    }
}

/// More than the buffers of two sockets hold.
const BIG_BYTES: usize = 24 << 20;

/// Goal: a file that is being sent goes on from the new server, byte for byte, with one line in the log, and so does the
/// connection behind it. Method: clients that read nothing until the old server is gone.
#[test]
fn downloads_go_on_with_the_new_server() {
    let big = pattern(BIG_BYTES, 3);
    for architecture in matrix::architectures("downloads_go_on_with_the_new_server", &matrix::USUAL) {
        let folder = folder();
        folder.write("big", big);
        // Less than the file: `threads-cache` would have all of it in memory, which is more than a message takes.
        let settings = format!(
            "architecture = \"{architecture}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
             [cache]\nmemory_bytes_max = 1048576\n[log]\naccess = \"access.log\"\nformat = \"json\""
        );
        configure(&folder, ANY_PORTS, "root", &settings);
        let mut server = start_in(folder);
        let protocols = [Protocol::Http, Protocol::Https];
        let mut downloads = protocols.map(|protocol| {
            let mut agent = server.over(protocol).agent();
            agent.begin("GET", "localhost", "/big", "", Body::None);
            assert_eq!(agent.head().status, 200);
            let begun = agent.at_least(1_000);
            (agent, begun)
        });
        server.ctl(&["upgrade"]);
        server.ended();
        wait_until("the new one has both", || counted(&server, "baton_connections_taken_over_total") == 2);
        for (agent, begun) in &mut downloads {
            begun.extend(
                agent
                    .body()
                    .unwrap_or_else(|CutOff(got)| panic!("{architecture}: cut off behind {}", got.len())),
            );
            assert!(*begun == big, "{architecture}: the download differs");
            assert_eq!(agent.get("/").text(), "first", "{architecture}");
        }
        let lines = || read(&server, "access.log");
        let of_big =
            || lines().lines().filter(|line| line.contains("/big")).map(str::to_owned).collect::<Vec<_>>();
        wait_until("both are in the log", || of_big().len() == 2);
        for line in of_big() {
            let logged: serde_json::Value = serde_json::from_str(&line).expect("JSON");
            assert_eq!(logged["outcome"], "complete", "{architecture}: {line}");
            assert_eq!(logged["body_bytes"], BIG_BYTES, "{architecture}: {line}");
        }
    }
}

/// Goal: no connection is closed and no request lost, however often the server is upgraded. Method: clients on one
/// connection each, for whom its end is a failure, ask with and without pauses.
#[test]
fn upgrades_under_load_close_no_connection() {
    let upgrades = std::env::var("UPGRADES").map_or(UPGRADES, |count| count.parse().expect("a number"));
    let server = started("auto");
    under_load(&server, || {
        for _ in 0..upgrades {
            let before = pid(&status(&server)["pid"]);
            server.ctl(&["upgrade"]);
            wait_until("the old one is gone", || !is_alive(before));
            assert_ne!(pid(&status(&server)["pid"]), before);
            wait_until("it has no predecessor", || status(&server)["predecessor"].is_null());
        }
    });
}

/// Runs `act` while clients on one connection each, for whom its end is a failure, ask with and without pauses.
fn under_load(server: &Server, act: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    let load = [0, 0, 1, 3, 10, 50, 200, 1_500];
    scope(|threads| {
        for (pause_ms, protocol) in
            load.into_iter().flat_map(|pause_ms| Protocol::ALL.map(|one| (pause_ms, one)))
        {
            let (is_over, address) = (&is_over, server.over(protocol).address());
            threads.spawn(move || {
                let mut agent = Agent::connect(address, protocol);
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(agent.get("/").text(), "first");
                    sleep(Duration::from_millis(pause_ms));
                }
            });
        }
        let _end = EndOfLoad(&is_over);
        act();
    });
}

/// Lets the clients go, also when the test fails.
struct EndOfLoad<'a>(&'a AtomicBool);

impl Drop for EndOfLoad<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Replaces all workers, and waits until the old ones are gone.
pub(crate) fn recycle(server: &Server) {
    let before = serving(server);
    assert_eq!(server.ctl(&["recycle"]), format!("workers that are replaced: {}\n", before.len()));
    wait_until("the old workers are gone", || !before.iter().any(|&worker| is_alive(worker)));
}

/// Goal: workers that are replaced close no connection between two requests. Method: as for an upgrade.
#[test]
fn kept_connections_go_on_with_other_workers() {
    for architecture in matrix::architectures("kept_connections_go_on_with_other_workers", &matrix::USUAL) {
        let server = started(architecture);
        let mut kept = Kept::connect(&server, architecture);
        recycle(&server);
        // More often than once, where an old worker has taken one of another.
        wait_until("the new ones have them", || {
            counted(&server, "baton_connections_taken_over_total") >= KEPT
        });
        wait_until("each has one owner", || counted(&server, "baton_connections_open") == KEPT);
        kept.go_on(architecture);
    }
}

/// Goal: no connection is closed and no request lost, however often the workers are replaced, and none starts anew.
#[test]
fn workers_that_are_replaced_under_load_close_no_connection() {
    let server = started("symped");
    under_load(&server, || {
        for _ in 0..UPGRADES {
            recycle(&server);
        }
    });
    assert_eq!(status(&server)["workers"][0]["restarts"], 0);
}
