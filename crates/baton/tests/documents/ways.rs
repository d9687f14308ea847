//! Documents move whatever clients speak, and however a server works.

use crate::common::agent::Agent;
use crate::common::client::Response;
use crate::common::folder::pattern;
use crate::common::protocol::Protocol;
use crate::common::server::wait_until;
use crate::servers::{Servers, Settings, split};

/// A document by one request on a new connection.
fn ask(protocol: Protocol, url: &str) -> Response {
    let (authority, path) = split(url);
    let address = authority.replace("localhost", "127.0.0.1").parse().expect("an address");
    Agent::connect(address, protocol).ask_host(authority, "GET", path, "")
}

/// Goal: pages show documents where they are, old addresses lead there, and there they are. Method: many connections, which
/// the workers share.
fn move_over(protocol: Protocol, settings: Settings<'_>) {
    let servers = Servers::start(1, settings);
    let home = servers.url(0);
    servers.busy_until("two documents are away", |servers| servers.announced().len() >= 2);
    let away = servers.announced();
    wait_until("all workers know it", || {
        (0..8).all(|_| {
            let page = ask(protocol, &format!("{home}/")).text().to_owned();
            away.iter().all(|address| page.contains(&format!("<img src=\"{address}\">")))
        })
    });
    for address in &away {
        let (_, image) = address.rsplit_once('/').expect("a path");
        let number: usize = image.trim_end_matches(".png").parse().expect("an image");
        for _ in 0..8 {
            let old = ask(protocol, &format!("{home}/img/{image}"));
            assert_eq!((old.status, old.field("location")), (307, Some(&**address)));
        }
        let copy = ask(protocol, address);
        assert_eq!((copy.status, &*copy.body), (200, pattern(2_000 + number, number as u64)), "{address}");
    }
}

#[test]
fn documents_move_for_clients_of_http2() {
    move_over(Protocol::H2c, Settings::default());
}

#[test]
fn documents_move_for_browsers() {
    let trusts = ", authorities = '{base}/localhost.pem'";
    let settings = Settings { home: trusts, peer: trusts, is_secure: true, ..Settings::default() };
    move_over(Protocol::H2, settings);
}

#[test]
fn documents_move_between_servers_with_several_workers() {
    move_over(Protocol::Http, Settings { server: "processes = 3", ..Settings::default() });
}

#[test]
fn documents_move_between_pipelines() {
    let server = "architecture = 'pipeline'\nprocesses = 2";
    move_over(Protocol::Http, Settings { server, ..Settings::default() });
}

#[test]
fn documents_move_between_servers_with_threads() {
    move_over(Protocol::Http, Settings { server: "architecture = 'mt'", ..Settings::default() });
}
