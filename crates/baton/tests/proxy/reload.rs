//! What lasts longer than a configuration: tunnels and streams go on through reloads and upgrades.

use std::fs;

use crate::common::agent::Body;
use crate::common::client::Client;
use crate::common::folder::Folder;
use crate::common::server::Server;
use crate::manners::allow;
use crate::origin::Origin;
use crate::peers::{server_of, urls, well};
use crate::site::{ORIGIN, logged};

fn server(settings: &str) -> Server {
    Server::run(
        Folder::new(),
        &format!(
            "{settings}processes = 1\n[log]\naccess = '{{base}}/access.log'\nformat = 'json'\nflush_ms = 10\n[[site]]\n\
             listen = '127.0.0.1:0'\n[[site.route]]\npath = '/'\nproxy = 'http://{}'\n",
            ORIGIN.address()
        ),
    )
}

fn open(server: &Server, path: &str) -> Client {
    let mut tunnel = server.connect();
    let fields = "Connection: Upgrade\r\nUpgrade: any\r\n";
    tunnel.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
    assert_eq!(tunnel.head().status, 101);
    assert_eq!(tunnel.take(6), b"hello,");
    tunnel
}

/// Goal: neither a tunnel nor events end with a reload or with the server's own end. Method: bytes flow after each.
#[test]
fn long_lived_streams_go_on() {
    let mut server = server("");
    let mut tunnel = open(&server, "/upgrade?reload");
    let path = "/events?reload";
    let mut events = server.agent();
    events.begin("GET", "localhost", path, "", Body::None);
    assert_eq!(events.head().status, 200);
    assert_eq!(events.at_least(8), b"data: 0\n");

    server.ctl(&["reload"]);
    tunnel.send(b"reloaded");
    assert_eq!(tunnel.take(8), b"RELOADED");
    allow(path);
    assert_eq!(events.at_least(8), b"data: 1\n");

    server.ctl(&["upgrade"]);
    tunnel.send(b"upgraded");
    assert_eq!(tunnel.take(8), b"UPGRADED");
    allow(path);
    assert_eq!(events.at_least(8), b"data: 2\n");
    allow(path);
    assert_eq!(events.body(), Ok(Vec::new()));
    tunnel.finish_sending();
    assert_eq!(tunnel.rest(), b"bye");
    server.ended();
    assert_eq!(logged(&server, "/upgrade?reload")["outcome"], "complete");
}

/// Goal: a drain ends requests at its deadline, and leaves tunnels the time that they have of their own.
#[test]
fn tunnels_have_a_deadline_of_their_own() {
    let mut server = server("drain_timeout_ms = 200\ndrain_tunnels_ms = 600000\n");
    let mut tunnel = open(&server, "/upgrade?drained");
    let mut events = server.agent();
    events.begin("GET", "localhost", "/events?drained", "", Body::None);
    assert_eq!(events.head().status, 200);
    let told = server.ctl(&["drain"]);
    assert!(told.contains("200 ms, tunnels 600000 ms"), "{told}");
    assert!(events.body().is_err(), "the drain's time is over");
    tunnel.send(b"still here");
    assert_eq!(tunnel.take(10), b"STILL HERE");
    tunnel.finish_sending();
    assert_eq!(tunnel.rest(), b"bye");
    server.ended();
    assert_eq!(logged(&server, "/events?drained")["outcome"], "stopped");
}

#[test]
fn a_drain_ends_tunnels_in_the_end() {
    let mut server = server("drain_timeout_ms = 100\ndrain_tunnels_ms = 200\n");
    let tunnel = open(&server, "/upgrade?cut");
    server.ctl(&["drain"]);
    server.ended();
    drop(tunnel);
    assert_eq!(logged(&server, "/upgrade?cut")["outcome"], "stopped");
}

/// Goal: paths stay at their origins when another origin joins. Method: with two origins, new paths go to either in turn; after
/// the reload they are asked for in the other order, by which a policy that had forgotten them would swap them.
#[test]
fn paths_stay_at_their_origins_when_another_joins() {
    let origins = [(); 3].map(|()| Origin::start(well));
    let [first, second, third] = origins.each_ref().map(Origin::address);
    let server = server_of("processes = 1\n", &urls(&[first, second]), "policy = 'lard'");
    let paths = ["/a", "/b", "/c", "/d"];
    let ask = |path: &str| {
        let before: Vec<_> = origins.iter().map(|origin| origin.seen(path).len()).collect();
        assert_eq!(server.get(path).status, 200);
        origins.iter().zip(before).position(|(origin, before)| origin.seen(path).len() > before)
    };
    let places: Vec<_> = paths.map(&ask).into();
    assert_eq!(places, [Some(0), Some(1), Some(0), Some(1)]);
    let file = server.folder().base().join("baton.toml");
    let text = fs::read_to_string(&file).expect("the configuration");
    fs::write(&file, text.replace(&urls(&[first, second]), &urls(&[third, second, first]))).expect("written");
    server.ctl(&["reload"]);
    for (path, place) in paths.into_iter().zip(places).rev() {
        assert_eq!(ask(path), place, "{path}");
    }
    assert!(["/e", "/f", "/g"].map(ask).contains(&Some(2)), "the new origin gets new paths");
}
