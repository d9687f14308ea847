//! Several front-ends that share nothing but etcd's list of nodes: prompts with a common beginning go to one node, whichever
//! front-end is asked.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::common::folder::Folder;
use crate::common::server::Server;
use crate::hosts::{front_configuration, wait_for_nodes};
use crate::origin::{Origin, Peer};
use crate::store::Store;

/// Beginnings of prompts that are known before nodes change.
const KNOWN: usize = 24;

/// A node that answers anything with its name.
fn serve<const NAME: char>(peer: &mut Peer) {
    while peer.request().is_some() {
        peer.answer("", NAME.to_string());
    }
}

/// Registers a node: another program than Baton may do so.
fn join(store: &Store, name: &str, origin: &Origin) {
    let value = format!(r#"{{"version":1,"to":"http://{}"}}"#, origin.address());
    store.ctl(&["put", &format!("/baton/nodes/{name}"), &value]);
}

fn front(store: &Store) -> Server {
    let keyed = "cluster = { key = 'json:/messages/0/content' }";
    Server::run(Folder::new(), &front_configuration(store).replace("cluster = true", keyed))
}

/// The node to which all front-ends send prompts with each of these beginnings; every prompt goes on in another way.
fn homes(fronts: &[&Server], beginnings: Range<usize>) -> Vec<String> {
    let home = |beginning| {
        let by: BTreeSet<_> = fronts
            .iter()
            .enumerate()
            .map(|(number, front)| {
                let messages = format!(r#"[{{"content":"beginning {beginning}"}},{{"content":"{number}"}}]"#);
                let body = format!(r#"{{"model":"m","messages":{messages}}}"#);
                front.agent().send("POST", "/v1/chat", body.as_bytes()).text().to_owned()
            })
            .collect();
        assert_eq!(by.len(), 1, "front-ends disagree on beginning {beginning}: {by:?}");
        by.into_iter().next().expect("a node")
    };
    beginnings.map(home).collect()
}

/// Goal: front-ends agree on each beginning, before and after nodes join and leave, and only what has to move moves.
#[test]
fn front_ends_agree_on_prompts_while_nodes_join_and_leave() {
    let Some(store) = Store::start() else { return };
    let [a, b, c] = [Origin::start(serve::<'a'>), Origin::start(serve::<'b'>), Origin::start(serve::<'c'>)];
    join(&store, "a", &a);
    join(&store, "b", &b);
    let fronts = [front(&store), front(&store), front(&store)];
    let fronts = fronts.each_ref();
    wait_for_nodes(&fronts, "a b");
    let before = homes(&fronts, 0..KNOWN);
    assert_eq!(BTreeSet::from_iter(&before).len(), 2, "{before:?}");

    join(&store, "c", &c);
    wait_for_nodes(&fronts, "a b c");
    assert_eq!(homes(&fronts, 0..KNOWN), before, "nodes remember these");
    let new = homes(&fronts, KNOWN..2 * KNOWN);
    assert_eq!(BTreeSet::from_iter(&new).len(), 3, "{new:?}");

    store.ctl(&["del", "/baton/nodes/b"]);
    wait_for_nodes(&fronts, "a c");
    let after = homes(&fronts, 0..KNOWN);
    for (home, now) in before.iter().zip(&after) {
        assert!(if home == "b" { now != "b" } else { now == home }, "{before:?} {after:?}");
    }
}
