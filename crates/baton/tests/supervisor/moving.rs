//! Clients that another process goes on with, on the connections that they have: one of the next server, or another worker.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use crate::common::ARCHITECTURES;
use crate::common::client::Client;
use crate::common::server::{Server, wait_until};
use crate::supervised::{
    ANY_PORT, admin_address, configure, folder, is_alive, pid, serving, start_in, status,
};

/// Upgrades under load; more by hand: `UPGRADES=100`.
const UPGRADES: usize = 5;

fn started(architecture: &str) -> Server {
    let folder = folder();
    configure(
        &folder,
        ANY_PORT,
        "root",
        &format!("architecture = \"{architecture}\"\n[admin]\nlisten = \"127.0.0.1:0\""),
    );
    start_in(folder)
}

/// What the current server counts.
fn counted(server: &Server, name: &str) -> u64 {
    let metrics = Client::connect(admin_address(server)).get("/metrics").text().to_owned();
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.expect("it is counted").parse().expect("a number")
}

/// Goal: an upgrade closes no connection between two requests. Method: clients with kept connections, one of them with half
/// a request, and one that has sent nothing yet, go on with the new server where they were.
#[test]
fn kept_connections_go_on_with_the_new_server() {
    for architecture in ARCHITECTURES {
        let mut server = started(architecture);
        let mut clients: Vec<Client> = (0..3).map(|_| server.connect()).collect();
        for client in &mut clients[..2] {
            assert_eq!(client.get("/").text(), "first", "{architecture}");
        }
        clients[1].send("GET / HTTP/1.1\r\nHo");
        wait_until("the server has them", || counted(&server, "baton_connections_open") == 3);
        server.ctl(&["upgrade"]);
        server.ended();
        wait_until("the new one has them", || counted(&server, "baton_connections_taken_over_total") == 3);
        clients[1].send("st: localhost\r\n\r\n");
        assert_eq!(clients[1].response().text(), "first", "{architecture}");
        for client in &mut clients {
            for _ in 0..2 {
                assert_eq!(client.get("/").text(), "first", "{architecture}");
            }
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
    let address = server.address();
    scope(|threads| {
        for pause_ms in [0, 0, 1, 3, 10, 50, 200, 1_500] {
            let is_over = &is_over;
            threads.spawn(move || {
                let mut client = Client::connect(address);
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(client.get("/").text(), "first");
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
fn recycle(server: &Server) {
    let before = serving(server);
    assert_eq!(server.ctl(&["recycle"]), format!("workers that are replaced: {}\n", before.len()));
    wait_until("the old workers are gone", || !before.iter().any(|&worker| is_alive(worker)));
}

/// Goal: workers that are replaced close no connection between two requests. Method: as for an upgrade.
#[test]
fn kept_connections_go_on_with_other_workers() {
    for architecture in ARCHITECTURES {
        let server = started(architecture);
        let mut clients: Vec<Client> = (0..3).map(|_| server.connect()).collect();
        for client in &mut clients[..2] {
            assert_eq!(client.get("/").text(), "first", "{architecture}");
        }
        clients[1].send("GET / HTTP/1.1\r\nHo");
        wait_until("the server has them", || counted(&server, "baton_connections_open") == 3);
        recycle(&server);
        // More often than once, where an old worker has taken one of another.
        wait_until("the new ones have them", || counted(&server, "baton_connections_taken_over_total") >= 3);
        wait_until("each has one owner", || counted(&server, "baton_connections_open") == 3);
        clients[1].send("st: localhost\r\n\r\n");
        assert_eq!(clients[1].response().text(), "first", "{architecture}");
        for client in &mut clients {
            assert_eq!(client.get("/").text(), "first", "{architecture}");
        }
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
