//! How many tunnels there may be, and that they take nothing from requests.

use crate::common::client::Client;
use crate::common::server::{Server, wait_until};
use crate::manners;
use crate::origin::Origin;
use crate::peers::{server_of, urls};
use crate::site::logged;

fn open(server: &Server, path: &str) -> Client {
    let (tunnel, status) = ask_for(server, path);
    assert_eq!(status, 101, "{path}");
    tunnel
}

/// Asks for a tunnel. Returns the status, too.
fn ask_for(server: &Server, path: &str) -> (Client, u16) {
    let mut tunnel = server.connect();
    let fields = "Connection: Upgrade\r\nUpgrade: any\r\n";
    tunnel.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
    let status = tunnel.head().status;
    (tunnel, status)
}

/// The bug: as many WebSockets as `connections_max` ended all proxying. A client has three quarters of the tunnels at most.
#[test]
fn tunnels_leave_requests_their_connections() {
    let origin = Origin::start(manners::serve);
    let server = server_of(
        "processes = 1\n",
        &urls(&[origin.address()]),
        "connections_max = 2, queue_max = 0, tunnels_max = 5",
    );
    let mut tunnels: Vec<_> = (0..4).map(|number| open(&server, &format!("/upgrade?{number}"))).collect();
    assert_eq!(server.get("/whole").status, 200);
    wait_until("the report", || server.status_text().contains("\"tunnels\":4"));
    let (_, status) = ask_for(&server, "/upgrade?beyond");
    assert_eq!((status, origin.seen("beyond").len()), (503, 0), "the origin is not asked");
    assert_eq!(logged(&server, "/upgrade?beyond")["origin"]["failure"], "tunnels-full");
    assert_eq!(server.get("/whole").status, 200);
    for tunnel in &mut tunnels {
        assert_eq!(tunnel.take(6), b"hello,");
        tunnel.send(b"on");
        assert_eq!(tunnel.take(2), b"ON");
    }
    drop(tunnels.pop());
    wait_until("room", || ask_for(&server, "/upgrade?room").1 == 101);
}

/// Goal: what is too much for one origin goes to another.
#[test]
fn another_origin_takes_what_is_beyond_the_bound() {
    let origins = [(); 2].map(|()| Origin::start(manners::serve));
    let to = urls(&origins.each_ref().map(Origin::address));
    let server = server_of("processes = 1\n", &to, "policy = 'consistent-hash', tunnels_max = 1");
    let _tunnels = [(); 2].map(|()| open(&server, "/upgrade"));
    assert_eq!(origins.each_ref().map(|origin| origin.seen("/upgrade").len()), [1, 1]);
    assert_eq!(ask_for(&server, "/upgrade").1, 503);
}
