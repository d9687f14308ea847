//! Nodes that are chosen by a key of the request instead of its path.

use std::collections::BTreeSet;

use crate::architectures::under_every_architecture;
use crate::common::agent::Body;
use crate::common::folder::Folder;
use crate::common::processes;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::front::{configuration, logged, metric};
use crate::origin::{Origin, Peer};

/// A node that answers anything with its number.
fn serve<const NUMBER: u8>(peer: &mut Peer) {
    while peer.request().is_some() {
        peer.answer("", [b'0' + NUMBER]);
    }
}

fn origins() -> [Origin; 3] {
    [Origin::start(serve::<0>), Origin::start(serve::<1>), Origin::start(serve::<2>)]
}

/// A server that distributes by a key, always to the node that its hash names.
fn front(settings: &str, key: &str, nodes: &[Origin]) -> Server {
    let nodes: Vec<_> = nodes.iter().map(|node| format!("'http://{}'", node.address())).collect();
    let text =
        configuration(settings, &format!("nodes = [{}]\npolicy = 'consistent-hash'", nodes.join(", ")));
    let text = text.replace("cluster = true", &format!("cluster = {{ key = '{key}' }}"));
    Server::run(Folder::new(), &text)
}

const SESSIONS: usize = 16;

/// Goal: requests with one value in their bodies go to one node, whatever else they have, by every protocol.
fn a_value_in_the_body_chooses_the_node(architecture: &str) {
    let nodes = origins();
    let settings = format!("architecture = '{architecture}'\nprocesses = {}", processes(architecture, 1));
    let front = front(&settings, "json:/chat/0/session", &nodes);
    let mut used = BTreeSet::new();
    for session in 0..SESSIONS {
        let mut of_session = BTreeSet::new();
        for protocol in Protocol::ALL {
            let front = front.over(protocol);
            let mut agent = front.agent();
            for path in ["/a", "/b?c"] {
                let body = format!("{{\"x\": \"{path}\", \"chat\":[ {{\"session\":{session}}}, 7]}}");
                let response = agent.send("POST", path, body.as_bytes());
                assert_eq!(response.status, 200, "{protocol:?}");
                of_session.insert(response.text().to_owned());
            }
        }
        assert_eq!(of_session.len(), 1, "session {session}");
        used.extend(of_session);
    }
    assert_eq!(used.len(), nodes.len());
    let seen: usize = nodes.iter().map(|node| node.seen("POST").len()).sum();
    assert_eq!(seen, SESSIONS * Protocol::ALL.len() * 2, "each request once, with its whole body");
}

under_every_architecture!(by name: a_value_in_the_body_chooses_the_node);

/// Goal: each kind of key chooses by its own part of the request alone.
#[test]
fn every_kind_of_key_keeps_its_requests_together() {
    let nodes = origins();
    for (key, path, fields, body) in [
        ("path", "/KEY?OTHER", "", ""),
        ("query", "/a?KEY", "X: OTHER\r\n", "OTHER"),
        ("header:x-tenant", "/OTHER", "X-Tenant: KEY\r\n", "OTHER"),
        ("cookie:sid", "/OTHER", "Cookie: a=OTHER; sid=KEY\r\n", "OTHER"),
        ("body-prefix:9", "/OTHER", "", "begin KEY OTHER"),
    ] {
        let front = front("", key, &nodes);
        let mut agent = front.agent();
        let mut used = BTreeSet::new();
        for value in 100..100 + SESSIONS {
            let answers: BTreeSet<_> = (0..4)
                .map(|other| {
                    let made = |text: &str| {
                        text.replace("KEY", &value.to_string()).replace("OTHER", &format!("{other:050}"))
                    };
                    let body = made(body);
                    let length = Body::Length(body.len());
                    agent.begin("POST", "a", &made(path), &made(fields), length);
                    agent.send_body(body.as_bytes());
                    agent.finish_body();
                    agent.response().text().to_owned()
                })
                .collect();
            assert_eq!(answers.len(), 1, "{key}, {value}: {answers:?}");
            used.extend(answers);
        }
        assert!(used.len() > 1, "{key}: all at {used:?}");
    }
}

/// Goal: a request without the key is placed by its path, counted, and marked in the log; so is one whose value lies beyond the
/// bytes that are read of it. Its body gets to the node whole.
#[test]
fn the_path_takes_the_place_of_a_key_that_is_missing() {
    let nodes = origins();
    let front = front("", "json:/session", &nodes);
    let mut agent = front.agent();
    let long = format!("{{\"prompt\":\"{}\",\"session\":7}}", "x".repeat(200_000));
    let bodies: [&[u8]; 5] = [b"", b"no json", b"{\"session\":null}", b"{\"session\":", long.as_bytes()];
    let answers: BTreeSet<_> =
        bodies.iter().map(|body| agent.send("POST", "/one", body).text().to_owned()).collect();
    assert_eq!(answers.len(), 1, "all by the path: {answers:?}");
    let lines = logged(&front, "/one", bodies.len());
    assert!(lines.iter().all(|line| line["origin"]["key"] == "missing"), "{lines:?}");
    let missing = "baton_cluster_keys_missing_total";
    wait_until("the count of missing keys", || metric(&front, missing) == bodies.len() as u64);
    let longest = nodes.iter().flat_map(|node| node.seen("/one")).map(|seen| seen.body).max_by_key(Vec::len);
    assert!(longest.as_deref() == Some(long.as_bytes()), "the long body has arrived as it was");
}

/// Goal: the operator is told the same node and the same key as the log has, and no value is in the log.
#[test]
fn an_operator_sees_which_key_has_chosen() {
    let nodes = origins();
    let front = front("", "json:/session", &nodes);
    let body = "{\"session\":\"s-secret\"}";
    let node = front.agent().send("POST", "/a", body.as_bytes()).text().parse::<usize>().expect("a number");
    let line = &logged(&front, "/a", 1)[0];
    let key = line["origin"]["key"].as_str().expect("a key");
    assert!(!line.to_string().contains("s-secret"), "{line}");
    let said = front.ctl(&["cluster", "why", "http://a.example/other", "--body", body]);
    for words in [
        &*format!("at http://{}", nodes[node].address()),
        "by json:/session: \"s-secret\"",
        &format!("in logs {key}"),
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let said = front.ctl(&["cluster", "why", "/other"]);
    assert!(said.contains("by the path, since the request has no json:/session"), "{said}");
}

/// Goal: a body that is slow keeps its own request waiting, holds nothing of a node, and has no part in the others' waits.
#[test]
fn a_slow_body_holds_up_no_other_request() {
    let nodes = origins();
    let front = front("", "body-prefix:4", &nodes);
    let mut slow = front.agent();
    slow.begin("POST", "a", "/slow", "Expect: 100-continue\r\n", Body::Length(6));
    slow.expect_continue();
    slow.send_body(b"abc");
    let others: BTreeSet<_> =
        (0..3).map(|_| front.agent().send("POST", "/other", b"abcdef").text().to_owned()).collect();
    assert_eq!(others.len(), 1);
    assert!(nodes.iter().all(|node| node.seen("/slow").is_empty()));
    slow.send_body(b"def");
    slow.finish_body();
    assert!(others.contains(slow.response().text()), "the same key");
}
