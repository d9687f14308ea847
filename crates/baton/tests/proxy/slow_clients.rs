//! Clients that read slowly or not at all, and what that costs their origin.

use crate::common::agent::Body;
use crate::common::folder::pattern;
use crate::common::protocol::Protocol;
use crate::origin::{Origin, Peer};
use crate::peers::{server_of, urls};
use crate::site::logged;

/// More than all sockets on the way hold.
const BYTES: usize = 24 << 20;

fn long(peer: &mut Peer) {
    while let Some(seen) = peer.request() {
        match seen.path().starts_with("/long") {
            true => peer.answer("", pattern(BYTES, 5)),
            false => peer.answer("", "short"),
        }
    }
}

/// The bug: as many clients as `connections_max` that read nothing ended all proxying. Method: one connection, and a request
/// behind such a client. With a file the request is answered, and the client loses nothing; without one it is not, so that
/// the response is long enough.
#[test]
fn a_client_that_does_not_read_holds_no_connection_to_the_origin() {
    let origin = Origin::start(long);
    for more in ["", "splice_bytes_min = 0"] {
        let settings = format!("connections_max = 1, queue_ms = 20000, {more}");
        let server = server_of("processes = 1\n", &urls(&[origin.address()]), &settings);
        for protocol in Protocol::ALL {
            let mut agent = server.over(protocol).agent();
            agent.begin("GET", "localhost", "/long", "", Body::None);
            assert_eq!(agent.head().field("content-length"), Some(&*BYTES.to_string()));
            assert_eq!(server.get("/short").status, 200, "{protocol:?} {more}");
            assert!(agent.body().expect("all of it") == pattern(BYTES, 5), "{protocol:?} {more}");
        }
        let settings = format!("connections_max = 1, queue_ms = 1500, response_file_bytes_max = 0, {more}");
        let server = server_of("processes = 1\n", &urls(&[origin.address()]), &settings);
        let mut agent = server.agent();
        agent.begin("GET", "localhost", "/long", "", Body::None);
        assert_eq!(agent.head().status, 200);
        assert_eq!(server.get("/short?waits").status, 503, "{more}");
        assert_eq!(logged(&server, "/short?waits")["origin"]["failure"], "queue-timeout");
    }
}
