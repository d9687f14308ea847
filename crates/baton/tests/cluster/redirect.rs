//! Clients that are sent to a node's own URL.

use crate::architectures::under_every_architecture;
use crate::common::processes;
use crate::common::protocol::Protocol;
use crate::front::{front, listed, logged, metric, nodes};

fn public(name: &str) -> String {
    format!(", public = 'https://{name}.example.org'")
}

/// Goal: what only reads is sent to the node that is chosen, with its query; what does not is relayed.
fn readers_are_redirected(architecture: &str) {
    let nodes = nodes(2);
    let settings = format!("architecture = '{architecture}'\nprocesses = {}", processes(architecture, 1));
    let cluster = format!("nodes = [{}]\nway = 'redirect'", listed(&nodes, public));
    let front = front(&settings, &cluster);
    for protocol in Protocol::ALL {
        let front = front.over(protocol);
        let mut agent = front.agent();
        for method in ["GET", "HEAD"] {
            let response = agent.ask(method, "/5.txt?a=b", "");
            let location = response.field("location").unwrap_or_default().to_owned();
            let is_node = |name: &str| location == format!("https://{name}.example.org/5.txt?a=b");
            assert!(response.status == 307 && (is_node("n0") || is_node("n1")), "{protocol:?}: {location}");
        }
        let response = agent.send("POST", "/5.txt", b"a body");
        assert_eq!(response.status, 405);
        assert!(response.field("x-node").is_some(), "relayed");
    }
}

under_every_architecture!(by name: readers_are_redirected);

/// Goal: a node without a URL for clients is relayed to; the log and the metrics say which way a request took.
#[test]
fn a_node_without_a_url_is_relayed_to() {
    let nodes = nodes(2);
    let listed = listed(&nodes, |name| if name == "n0" { public(name) } else { String::new() });
    let front = front("", &format!("nodes = [{listed}]\nway = 'redirect'\npolicy = 'wrr'"));
    let mut agent = front.agent();
    let mut statuses = [(); 2].map(|()| agent.get("/9.txt").status);
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 307]);
    for line in logged(&front, "/9.txt", 2) {
        let (node, way) = if line["status"] == 307 { ("n0", "redirect") } else { ("n1", "relay") };
        assert_eq!((&line["origin"]["node"], &line["origin"]["way"]), (&node.into(), &way.into()));
        assert_eq!(
            metric(&front, &format!("baton_cluster_requests_total{{node=\"{node}\",way=\"{way}\"}}")),
            1
        );
    }
}

/// Goal: what a client still sends of the body of a request that was redirected is no request.
#[test]
fn the_rest_of_a_redirected_request_is_not_the_next_one() {
    let nodes = nodes(1);
    let front = front("", &format!("nodes = [{}]\nway = 'redirect'", listed(&nodes, public)));
    let within = "GET /within.txt HTTP/1.1\r\nHost: a\r\n\r\n";
    let len = within.len();
    let by_length = (format!("Content-Length: {}", 1 + len), "x", within.to_owned());
    let in_chunks =
        ("Transfer-Encoding: chunked".to_owned(), "1\r\nx\r\n", format!("{len:x}\r\n{within}\r\n0\r\n\r\n"));
    for (framing, first, rest) in [by_length, in_chunks] {
        let mut client = front.connect();
        client.send(format!("GET /5.txt HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n{first}"));
        assert_eq!(client.response().status, 307, "{framing}");
        client.send(rest);
        client.finish_sending();
        let behind = client.rest();
        assert!(behind.is_empty(), "{framing}: {}", String::from_utf8_lossy(&behind));
    }
    logged(&front, "/5.txt", 2);
    assert!(logged(&front, "/within.txt", 0).is_empty());
}
