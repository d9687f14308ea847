//! Event loops of one process: what one has fetched all have.

use crate::common::folder::{Folder, pattern};
use crate::common::server::{Server, wait_until};
use crate::site::{ORIGIN, Site, Visitor, allow, status};

/// A server whose architecture decides how many processes and loops it has.
fn own_choice(architecture: &str) -> Site {
    let configuration =
        OWN_CHOICE.replace("{architecture}", architecture).replace("{origin}", &ORIGIN.address().to_string());
    Site { server: Server::run(Folder::new(), &configuration) }
}

const OWN_CHOICE: &str = r#"
architecture = "{architecture}"
threads = 4
[[site]]
listen = "127.0.0.1:0"
[[site.route]]
path = "/c"
proxy = "http://{origin}/"
cache = { unkeyed_fields = ["X-Answer", "X-Kind"] }
"#;

/// Clients of all loops: more of them than a loop gets by chance alone.
const CLIENTS: usize = 40;

/// Architectures of one process with several loops; `auto` has one process if a route is cached.
const SEVERAL_LOOPS: [&str; 2] = ["auto", "shared-symped"];

#[test]
fn what_one_loop_has_fetched_others_serve() {
    for architecture in SEVERAL_LOOPS {
        let site = own_choice(architecture);
        assert_eq!(site.server.workers().len(), 1, "{architecture}");
        let mut first = site.visitor("loops");
        assert_eq!(first.get("200|Cache-Control: max-age=600||shared").text(), "shared");
        let mut clients: Vec<_> =
            (0..CLIENTS).map(|_| Visitor { agent: site.server.agent(), path: first.path.clone() }).collect();
        for client in &mut clients {
            let hit = client.get("500");
            assert_eq!((hit.text(), status(&hit).as_str()), ("shared", "baton; hit"), "{architecture}");
        }
        assert_eq!(first.seen().len(), 1, "{architecture}");
    }
}

/// Goal: readers of all loops get a response as it comes, from the loop that fetches it. Method: the origin waits in the
/// middle until all have the first half.
#[test]
fn a_response_is_read_by_all_loops_while_it_comes() {
    for architecture in SEVERAL_LOOPS {
        let site = own_choice(architecture);
        let first = site.visitor("halves");
        let path = first.path.clone();
        let mut clients: Vec<_> =
            (0..CLIENTS).map(|_| Visitor { agent: site.server.agent(), path: path.clone() }).collect();
        clients[0].begin("200|Cache-Control: max-age=600||^600000", "");
        wait_until("the request at the origin", || !first.seen().is_empty());
        clients[1..].iter_mut().for_each(|client| client.begin("500", ""));
        let halves: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                assert_eq!(client.agent.head().status, 200, "{architecture}");
                client.agent.at_least(300_000)
            })
            .collect();
        allow(&path);
        for (client, half) in clients.iter_mut().zip(halves) {
            let rest = client.agent.body().unwrap_or_else(|_| panic!("{architecture}: cut off"));
            assert!([half, rest].concat() == pattern(600_000, 7), "{architecture}");
        }
        assert_eq!(first.seen().len(), 1, "{architecture}");
    }
}
