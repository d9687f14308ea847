//! Goal: messages between a server and its agent are read as they were written, within their bounds, and nothing else is
//! taken for one.

use baton_cluster::local::{
    AgentSettings, FromMaster, FromWorker, Loads, MESSAGE_BYTES_MAX, MessageRefused, NAME_BYTES_MAX,
    NODES_MAX, Node, REPORT_FLOWS_MAX, Report, SettingsRefused, ToMaster, VERSION,
};
use baton_passport::{Address, Passport, Refused, UNREAD_BYTES_MAX};
use proptest::prelude::*;

fn passport(unread: Vec<u8>) -> Box<Passport> {
    Box::new(Passport {
        listener: Address::Tcp("0.0.0.0:80".parse().unwrap()),
        peer: Some("192.0.2.7:40000".parse().unwrap()),
        requests: 1,
        written: 2,
        was_passed: false,
        flow: None,
        stay: false,
        unread,
        left_ms: None,
        begins_with_tls: false,
        parts: Vec::new(),
    })
}

fn handoff() -> Vec<u8> {
    FromWorker::Handoff { node: "b".into(), passport: passport(b"GET / HTTP/1.1\r\n\r\n".to_vec()) }
        .to_message()
        .unwrap()
}

proptest! {
    #[test]
    fn what_a_worker_writes_is_read(
        node in "[a-z0-9.\n\"]{0,64}",
        unread in proptest::collection::vec(any::<u8>(), 0..300),
        flow in any::<u64>(),
        flows in proptest::collection::vec(any::<u64>(), 0..30),
        more in proptest::collection::vec(any::<u64>(), 0..3),
    ) {
        let messages = [
            FromWorker::Handoff { node, passport: passport(unread.clone()) },
            FromWorker::Return { flow, passport: passport(unread) },
            FromWorker::Report(Report { worker: 7, taken: more.clone(), begun: more.clone(), ended: flows, gone: more }),
        ];
        for message in messages {
            let bytes = message.to_message().unwrap();
            prop_assert_eq!(FromWorker::from_message(&bytes), Ok(message));
        }
    }

    #[test]
    fn a_message_that_is_cut_is_refused(at in any::<prop::sample::Index>()) {
        let message = handoff();
        prop_assert!(FromWorker::from_message(&message[..at.index(message.len())]).is_err());
    }
}

#[test]
fn the_format_is_a_line_and_a_passport() {
    let text = String::from_utf8(handoff()).unwrap();
    let (line, passport) = text.split_once('\n').unwrap();
    assert_eq!(line, r#"{"version":1,"message":"hand-off","node":"b"}"#);
    assert!(Passport::from_message(passport.as_bytes()).is_ok());
    let report =
        FromWorker::Report(Report { worker: 9, gone: vec![7], ..Report::default() }).to_message().unwrap();
    assert_eq!(report, b"{\"version\":1,\"message\":\"report\",\"worker\":9,\"gone\":[7]}\n");
}

#[test]
fn messages_have_bounds() {
    let longest = FromWorker::Handoff {
        node: "\u{1}".repeat(NAME_BYTES_MAX),
        passport: passport(vec![b'x'; UNREAD_BYTES_MAX]),
    };
    assert!(longest.to_message().unwrap().len() <= MESSAGE_BYTES_MAX);
    let too_long =
        FromWorker::Handoff { node: "x".repeat(NAME_BYTES_MAX + 1), passport: passport(Vec::new()) };
    assert_eq!(too_long.to_message(), None);
    let report = |flows| FromWorker::Report(Report { ended: vec![u64::MAX; flows], ..Report::default() });
    assert!(report(REPORT_FLOWS_MAX).to_message().unwrap().len() <= MESSAGE_BYTES_MAX);
    assert_eq!(report(REPORT_FLOWS_MAX + 1).to_message(), None);
}

#[test]
fn other_versions_and_fields() {
    let text = String::from_utf8(handoff()).unwrap();
    let refused = |from: &str, to: &str| FromWorker::from_message(text.replacen(from, to, 1).as_bytes());
    assert_eq!(refused("\"version\":1", "\"version\":2"), Err(MessageRefused::Version(2)));
    assert_eq!(refused("hand-off", "hand-on"), Err(MessageRefused::Malformed));
    assert_eq!(refused("GET", "GE"), Err(MessageRefused::Passport(Refused::Length)));
    assert!(refused("\"node\"", "\"more\":[1],\"node\"").is_ok());
}

#[test]
fn what_a_master_writes_is_read() {
    let node = Node {
        name: "b".into(),
        agent: "10.0.0.12:7946".parse().unwrap(),
        next_hop: "10.0.0.12".parse().unwrap(),
    };
    let settings = AgentSettings {
        nodes: vec![node.clone()],
        listen: Some("[::]:7946".parse().unwrap()),
        key: "/etc/baton/cluster.pem".into(),
        revoked: vec!["stolen".into()],
        interfaces: Vec::new(),
    };
    for message in [
        FromMaster::Hello { version: VERSION, settings },
        FromMaster::Nodes { nodes: vec![node] },
        FromMaster::Drain { node: "a".into(), is_drained: true },
    ] {
        let text = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<FromMaster>(&text).unwrap(), message);
    }
    let loads = ToMaster::Loads(Loads { node: "b".into(), begun_kept: 1, ended: 2, active: 3 });
    let text = serde_json::to_string(&loads).unwrap();
    assert_eq!(text, r#"{"message":"loads","node":"b","begun_kept":1,"ended":2,"active":3}"#);
    assert_eq!(serde_json::from_str::<ToMaster>(&text).unwrap(), loads);
}

#[test]
fn nodes_are_checked() {
    let node = |name: &str| Node {
        name: name.into(),
        agent: "[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:65535".parse().unwrap(),
        next_hop: "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff".parse().unwrap(),
    };
    assert_eq!(Node::check(&[node("a"), node("b")]), Ok(()));
    assert_eq!(Node::check(&[node("a"), node("a")]), Err(SettingsRefused::Name("a".into())));
    assert_eq!(Node::check(&[node("")]), Err(SettingsRefused::Name(String::new())));
    let nodes = |count| (0..count).map(|n| node(&format!("{n:0>width$}", width = NAME_BYTES_MAX))).collect();
    let most: Vec<_> = nodes(NODES_MAX);
    assert_eq!(Node::check(&most), Ok(()));
    assert!(serde_json::to_vec(&FromMaster::Nodes { nodes: most }).unwrap().len() < 60 << 10);
    assert_eq!(Node::check(&nodes(NODES_MAX + 1)), Err(SettingsRefused::TooMany));
}
