//! The process against a real etcd: leases, watches, and what goes wrong.

mod host;
#[path = "../../../baton/tests/common/port.rs"]
mod port;
mod relay;
mod store;

use baton_membership::{Etcd, EtcdUser};

use host::{Host, names};
use port::free_port;
use relay::Relay;
use store::Store;

/// Goal: nodes see each other; one that ends in order is gone at once, one that is killed when its lease has expired.
#[test]
fn nodes_register_leave_and_expire() {
    let Some(store) = Store::start() else { return };
    let folder = store.folder();
    let mut front = Host::start(Some(store.settings()), &folder.join("front.json"));
    let [a, b, c] = ["a", "b", "c"].map(|name| Host::node(store.settings(), name, &folder));
    let report = front.wait_for_nodes("a b c");
    assert_eq!(report.members[1].to, "http://b.example:80");
    c.die();
    front.wait_for_nodes("a b");
    b.end();
    front.wait_for_nodes("a");
    // The last one is killed: nothing is better than it.
    a.die();
    front.wait_for_nodes("(a)");
    let again = Host::node(store.settings(), "a", &folder);
    front.wait_for_nodes("a");
    again.end();
    front.wait_for_nodes("");
}

/// Goal: two front-ends have the same view, and what one of them orders is seen by both.
#[test]
fn front_ends_share_the_view() {
    let Some(store) = Store::start() else { return };
    let folder = store.folder();
    let _nodes = ["a", "b"].map(|name| Host::node(store.settings(), name, &folder));
    let mut fronts =
        ["one", "two"].map(|name| Host::start(Some(store.settings()), &folder.join(format!("{name}.json"))));
    fronts.iter_mut().for_each(|front| _ = front.wait_for_nodes("a b"));
    fronts[0].order("b", Some(true), None).unwrap();
    fronts[1].order("b", None, Some(7)).unwrap();
    let is_ordered =
        |report: &baton_membership::Report| names(report) == "a b-drained" && report.members[1].weight == 7;
    let views = fronts.each_mut().map(|front| front.wait_for("both orders", is_ordered).members);
    assert_eq!(views[0], views[1]);
    fronts[1].order("b", Some(false), None).unwrap();
    fronts[0].wait_for_nodes("a b");
    assert!(fronts[0].order("no node", Some(true), None).is_err());
    // An order outlives the node that it is about.
    fronts[0].order("new", Some(true), None).unwrap();
    let _new = Host::node(store.settings(), "new", &folder);
    fronts[1].wait_for_nodes("a b new-drained");
}

/// Goal: what a node has left is seen by all, changes, is there after a new lease, and is no hindrance to leaving.
#[test]
fn a_node_says_what_it_has_left() {
    let Some(store) = Store::start() else { return };
    let folder = store.folder();
    let mut front = Host::start(Some(store.settings()), &folder.join("front.json"));
    let node = Host::node(store.settings(), "a", &folder);
    assert_eq!(front.wait_for_nodes("a").members[0].left, None);
    for left in [Some(7), Some(0), None, Some(3)] {
        node.tell_left(left);
        front.wait_for(&format!("{left:?}"), |report| report.members[0].left == left);
    }
    store.ctl(&["del", "/baton/nodes/a"]);
    store::wait_until("it is there again", || store.ctl(&["get", "/baton/nodes/a"]).contains(r#""left":3"#));
    node.end();
    front.wait_for_nodes("");
}

/// Goal: while etcd is away the last view counts, also for a process that begins meanwhile, and both say so; then all is as
/// before.
#[test]
fn the_last_view_counts_while_etcd_is_away() {
    let Some(mut store) = Store::start() else { return };
    let folder = store.folder();
    let state_file = folder.join("front.json");
    let mut front = Host::start(Some(store.settings()), &state_file);
    let mut nodes = ["a", "b"].map(|name| Host::node(store.settings(), name, &folder));
    front.wait_for_nodes("a b");
    store.stop();
    let report = front.wait_for("etcd is away", |report| report.etcd.as_ref().unwrap().error.is_some());
    let etcd = report.etcd.clone().unwrap();
    assert!(etcd.stale_since_s.is_some() && names(&report) == "a b", "{report:#?}");
    assert!(front.order("a", Some(true), None).unwrap_err().contains("no endpoint of etcd answers"));
    front.die();
    let mut front = Host::start(Some(store.settings()), &state_file);
    let report = front.wait_for("the restored view", |report| {
        report.etcd.as_ref().is_some_and(|etcd| etcd.error.is_some())
    });
    assert!(report.is_restored && names(&report) == "a b", "{report:#?}");
    assert!(report.etcd.unwrap().stale_since_s.is_some());
    store.run();
    let report = front.wait_for("etcd is back", |report| {
        let etcd = report.etcd.as_ref().unwrap();
        etcd.error.is_none() && !report.is_restored
    });
    assert_eq!((names(&report), report.etcd.unwrap().losses), ("a b".into(), 0));
    // Watches and leases go on.
    front.order("b", Some(true), None).unwrap();
    nodes[0].wait_for_nodes("a b-drained");
}

/// Goal: a view that has missed changes, which etcd does not keep any more, comes to the right nodes.
#[test]
fn changes_that_are_compacted_meanwhile_are_found() {
    let Some(store) = Store::start() else { return };
    let folder = store.folder();
    let relay = Relay::to(store.port());
    let settings = Etcd { endpoints: vec![relay.url()], ..store.settings() };
    let mut front = Host::start(Some(settings), &folder.join("front.json"));
    let [_a, b, _c] = ["a", "b", "c"].map(|name| Host::node(store.settings(), name, &folder));
    front.wait_for_nodes("a b c");
    relay.cut();
    front.wait_for("the cut", |report| report.etcd.as_ref().unwrap().error.is_some());
    b.end();
    let mut d = Host::node(store.settings(), "d", &folder);
    d.wait_for_nodes("a c d");
    d.order("d", None, Some(3)).unwrap();
    let revision = d.wait_for("its weight", |report| report.members[2].weight == 3).etcd.unwrap().revision;
    store.ctl(&["compact", &revision.to_string()]);
    relay.mend();
    let report = front.wait_for_nodes("a c d");
    assert_eq!((report.members[2].weight, report.etcd.unwrap().losses), (3, 0));
    d.order("c", Some(true), None).unwrap();
    front.wait_for_nodes("a c-drained d");
}

/// Goal: neither deleted keys nor lost data empty the cluster, and nodes register again.
#[test]
fn nodes_register_again_when_data_is_lost() {
    let Some(mut store) = Store::start() else { return };
    let folder = store.folder();
    let mut front = Host::start(Some(store.settings()), &folder.join("front.json"));
    let _nodes = ["a", "b", "c"].map(|name| Host::node(store.settings(), name, &folder));
    front.wait_for_nodes("a b c");
    store.ctl(&["del", "", "--prefix"]);
    front.wait_for("what is held", |report| report.members.iter().any(|member| member.held));
    front.wait_for_nodes("a b c");
    store.stop();
    store.wipe();
    store.run();
    front.wait_for("the loss", |report| report.etcd.as_ref().unwrap().losses == 1);
    let report = front.wait_for_nodes("a b c");
    assert!(!report.is_restored);
}

#[test]
fn values_of_others_do_not_count() {
    let Some(store) = Store::start() else { return };
    let folder = store.folder();
    let mut front = Host::start(Some(store.settings()), &folder.join("front.json"));
    let _node = Host::node(store.settings(), "a", &folder);
    front.wait_for_nodes("a");
    store.ctl(&["put", "/baton/nodes/bad", "{"]);
    store.ctl(&["put", "/baton/nodes/b", r#"{"version":1,"to":"http://b","weight":2}"#]);
    let report = front.wait_for_nodes("a b");
    let skipped = report.etcd.unwrap().skipped;
    assert!(skipped.len() == 1 && skipped[0].0 == "nodes/bad", "{skipped:?}");
    assert!(skipped[0].1.contains("not the JSON of a node"), "{skipped:?}");
    // Another node must not take a name that is taken.
    let other = Host::node(
        Etcd { endpoints: vec!["http://127.0.0.1:1".into(), store.url()], ..store.settings() },
        "b",
        &folder,
    );
    let mut other = other;
    let why = other.wait_for("a refusal", |report| {
        report.etcd.as_ref().and_then(|etcd| etcd.registered.as_ref()).is_some_and(|(_, why)| why.is_some())
    });
    let why = why.etcd.unwrap().registered.unwrap().1.unwrap();
    assert!(why.contains("another node is registered as b"), "{why}");
}

#[test]
fn another_endpoint_is_asked_and_users_log_in() {
    let Some(mut store) = Store::start() else { return };
    let folder = store.folder();
    store.ctl(&["user", "add", "root:secret"]);
    store.ctl(&["auth", "enable"]);
    let mut without = Host::start(Some(store.settings()), &folder.join("without.json"));
    without.wait_for("a refusal", |report| {
        let error = report.etcd.as_ref().and_then(|etcd| etcd.error.clone());
        error.is_some_and(|error| error.contains("user name is empty"))
    });
    store.login = Some(EtcdUser { user: "root".into(), password: "secret".into() });
    let dead = format!("http://127.0.0.1:{}", free_port());
    let settings = Etcd { endpoints: vec![dead, store.url()], ..store.settings() };
    let mut front = Host::start(Some(settings), &folder.join("front.json"));
    let _node = Host::node(store.settings(), "a", &folder);
    let report = front.wait_for_nodes("a");
    assert_eq!(report.etcd.unwrap().endpoint, store.url());
    // Tokens do not survive a restart.
    store.stop();
    front.wait_for("etcd is away", |report| report.etcd.as_ref().unwrap().error.is_some());
    store.run();
    front.wait_for("etcd is back", |report| report.etcd.as_ref().unwrap().error.is_none());
    front.order("a", Some(true), None).unwrap();
    front.wait_for_nodes("a-drained");
}

#[test]
fn etcd_is_known_by_its_certificate() {
    let Some(store) = Store::start_secure() else { return };
    let folder = store.folder();
    let mut front = Host::start(Some(store.settings()), &folder.join("front.json"));
    let _node = Host::node(store.settings(), "a", &folder);
    front.wait_for_nodes("a");
    let mut stranger =
        Host::start(Some(Etcd { ca: None, ..store.settings() }), &folder.join("stranger.json"));
    stranger.wait_for("a refusal", |report| report.etcd.as_ref().is_some_and(|etcd| etcd.error.is_some()));
}
