//! Thresholds that fit the nodes, and that the operator sees.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::client::Client;
use crate::common::server::wait_until;
use crate::front::front;
use crate::origin::{Origin, Peer};

/// A node whose disk is far away: it takes any number of requests at once.
fn waits(peer: &mut Peer) {
    while peer.request().is_some() {
        std::thread::sleep(Duration::from_millis(10));
        peer.answer("", "read");
    }
}

/// Goal: thresholds begin as published, and are derived from what the node answers once requests have to wait for it; the status says
/// both. Method: the bound of one node is T_low - 1 = 24 requests; twice as many clients keep it full.
#[test]
fn thresholds_follow_the_nodes_while_requests_wait() {
    let node = Origin::start(waits);
    let front = front("", &format!("nodes = ['http://{}']", node.address()));
    assert_eq!(front.get("/first").status, 200);
    let said = || front.ctl(&["cluster"]);
    let begun = "t_low 25, t_high 65: as published, since no request has had to wait\n";
    assert!(said().contains(begun), "{}", said());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..48 {
            scope.spawn(|| {
                let mut client = Client::connect(front.address());
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(client.get("/page").status, 200);
                }
            });
        }
        wait_until("the status says what was seen", || {
            said().contains("10 % more requests at the nodes brought")
        });
        is_over.store(true, Ordering::Relaxed);
    });
    let told = front.ctl(&["cluster", "--json"]);
    assert!(told.contains("\"answers_per_s\":") && !told.contains("\"answers_per_s\": null"), "{told}");
}

/// Goal: what is set stays, and the other threshold keeps the published relation to it.
#[test]
fn thresholds_that_are_set_stay() {
    let node = Origin::start(waits);
    for (set, said) in [
        ("t_low = 7\nt_high = 40", "t_low 7 (set), t_high 40 (set)\n"),
        ("t_high = 130", "t_low 50, t_high 130 (set)\n"),
        ("t_low = 10", "t_low 10 (set), t_high 65: as published"),
        ("admission = false", "t_low 25, t_high 65: as published, since `admission` is off\n"),
    ] {
        let front = front("", &format!("nodes = ['http://{}']\n{set}", node.address()));
        assert_eq!(front.get("/page").status, 200);
        let told = front.ctl(&["cluster"]);
        assert!(told.contains(said), "{set}: {told}");
    }
}
