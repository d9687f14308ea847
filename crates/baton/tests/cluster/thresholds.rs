//! Thresholds that fit the nodes, and that the operator sees.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::common::client::Client;
use crate::common::server::{Server, wait_until};
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
    under_load(&front, || {
        wait_until("the status says what was seen", || {
            said().contains("10 % more requests at the nodes brought")
        });
    });
    assert!(thresholds(&front)["answers_per_s"].is_f64());
}

/// 48 clients ask without a pause while `act` runs.
fn under_load(front: &Server, act: impl FnOnce()) {
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
        act();
        is_over.store(true, Ordering::Relaxed);
    });
}

fn thresholds(front: &Server) -> Value {
    let told: Value = serde_json::from_str(&front.ctl(&["cluster", "--json"])).expect("JSON");
    told["thresholds"].clone()
}

static PROCESSOR: Mutex<()> = Mutex::new(());
/// Requests that are at the node, and the most that ever were since this was reset.
static AT_NODE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static WORKED: AtomicUsize = AtomicUsize::new(0);
/// How long the node works on a request, at the least.
const SERVICE: Duration = Duration::from_micros(500);

/// A node that works on one request at a time.
fn works(peer: &mut Peer) {
    while peer.request().is_some() {
        MOST.fetch_max(AT_NODE.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let turn = PROCESSOR.lock().expect("no panic");
        std::thread::sleep(SERVICE);
        drop(turn);
        // Before the server can know that it has ended.
        AT_NODE.fetch_sub(1, Ordering::SeqCst);
        WORKED.fetch_add(1, Ordering::SeqCst);
        peer.answer("", "worked");
    }
}

/// Goal: thresholds come from the measured service time R, as the source derives them, and the bound of admission from these. Method:
/// R is known: a node sleeps for 0.5 ms, so it answers 2,000 a second at the most. For D = 25 ms, T_high = (T_low + D / R) / 2 =
/// 50 / (2 - 25/65) = 31 then, and less on a machine that is slower, but no less than 8 * 65/25 = 21; published are 65. A tenth is left for
/// answers that are told in batches.
#[test]
fn thresholds_follow_a_service_time_that_is_known() {
    // T_low - 1 for a node alone, a fifth higher by turns.
    const AT_NODE_MAX: usize = 15;
    let node = Origin::start(works);
    let front = front("", &format!("nodes = ['http://{}']\ndelay_spread_ms = 25", node.address()));
    under_load(&front, || {
        wait_until("as many as published are at the node", || MOST.load(Ordering::SeqCst) > AT_NODE_MAX);
        wait_until("thresholds are fitted", || thresholds(&front)["answers_per_s"].is_f64());
        wait_until("there are fewer", || AT_NODE.load(Ordering::SeqCst) <= AT_NODE_MAX);
        MOST.store(0, Ordering::SeqCst);
        let before = WORKED.load(Ordering::SeqCst);
        wait_until("further requests", || WORKED.load(Ordering::SeqCst) > before + 1_000);
        assert!(MOST.load(Ordering::SeqCst) <= AT_NODE_MAX, "{}", MOST.load(Ordering::SeqCst));
    });
    let told = thresholds(&front);
    let number = |key: &str| told[key].as_f64().expect("a number");
    let (t_low, t_high, answers_per_s) = (number("t_low"), number("t_high"), number("answers_per_s"));
    assert!(answers_per_s <= 2_200.0, "{told}");
    assert!((21.0..=34.0).contains(&t_high), "{told}");
    assert!(t_high <= (0.025 * answers_per_s / (2.0 - 25.0 / 65.0)).max(21.0) + 1.0, "{told}");
    assert!((t_low - t_high / 2.6).abs() < 1.0, "{told}");
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
