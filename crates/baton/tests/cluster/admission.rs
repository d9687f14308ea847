//! The bound of what the cluster takes at a time: requests beyond it wait in the server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::server::wait_until;
use crate::front::{front, logged, metric};
use crate::origin::{Origin, Peer};

static MAY_ANSWER: AtomicBool = AtomicBool::new(false);

/// Answers as soon as the test lets it.
fn held(peer: &mut Peer) {
    while peer.request().is_some() {
        while !MAY_ANSWER.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        peer.answer("", "at last");
    }
}

/// Goal: two nodes with T_low = 2 and T_high = 3 have (2 - 1) * 3 + 2 - 1 = 4 requests at a time; a fifth one waits, gets 503 when it
/// has waited for too long, and goes on if one of the four ends.
#[test]
fn requests_beyond_the_bound_wait_in_the_server() {
    let nodes = [(); 2].map(|()| Origin::start(held));
    let listed: Vec<_> = nodes.iter().map(|node| format!("'http://{}'", node.address())).collect();
    let cluster = |queue_ms: u32| {
        format!("nodes = [{}]\nt_low = 2\nt_high = 3\nrelay = {{ queue_ms = {queue_ms} }}", listed.join(", "))
    };
    let seen = || nodes.iter().map(|node| node.seen("/").len()).sum::<usize>();
    let hasty = front("", &cluster(100));
    std::thread::scope(|scope| {
        let four: Vec<_> = (0..4)
            .map(|number| {
                let hasty = &hasty;
                scope.spawn(move || hasty.get(&format!("/{number}")).status)
            })
            .collect();
        wait_until("four requests are at the nodes", || seen() == 4);
        assert_eq!(hasty.get("/late").status, 503);
        assert_eq!(logged(&hasty, "/late", 1)[0]["origin"]["failure"], "queue-timeout");
        assert_eq!(seen(), 4, "it was at no node");
        MAY_ANSWER.store(true, Ordering::Relaxed);
        assert!(four.into_iter().all(|one| one.join().expect("a status") == 200));
    });
    assert_eq!(hasty.get("/next").status, 200);
    MAY_ANSWER.store(false, Ordering::Relaxed);
    let patient = front("", &cluster(60_000));
    let before = seen();
    std::thread::scope(|scope| {
        let ten: Vec<_> = (0..10)
            .map(|number| {
                let patient = &patient;
                scope.spawn(move || patient.get(&format!("/{number}")).status)
            })
            .collect();
        wait_until("four requests are at the nodes", || seen() - before == 4);
        MAY_ANSWER.store(true, Ordering::Relaxed);
        assert!(ten.into_iter().all(|one| one.join().expect("a status") == 200));
    });
    let ways = nodes.iter().map(|node| {
        metric(
            &patient,
            &format!("baton_cluster_requests_total{{node=\"{}\",way=\"relay\"}}", node.address()),
        )
    });
    assert_eq!(ways.sum::<u64>(), 10);
}
