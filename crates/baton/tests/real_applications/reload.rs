//! php-fpm whose workers are replaced under load, by every transport: another worker gets requests that were not
//! read.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::protocol::Protocol;
use crate::faults::{Stage, TRANSPORTS, WORKERS};
use crate::fpm::Aid;

/// More than workers, so that there is always a client for the next connection, or the next worker.
const CLIENTS: usize = 3 * WORKERS;

/// php-fpm gives its workers this long to finish, also on a busy machine.
const PATIENT: &str = "[global]\nprocess_control_timeout = 100s\n";

/// Stops the clients, also when a test fails meanwhile.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Clients of all protocols send requests on kept connections, half of them not repeatable. `is_over` decides by the
/// number of their requests when to stop; `meanwhile` runs beside them.
///
/// Without the library the server cannot tell whether a non-repeatable request has begun, so it may fail; every other
/// request is answered.
fn under_load(stage: &Stage, is_over: impl Fn(usize) -> bool + Sync, meanwhile: impl FnOnce()) {
    let visit = |number: usize| {
        let connect = || stage.server.over(Protocol::ALL[number % Protocol::ALL.len()]).agent();
        let mut client = connect();
        let mut answered = Vec::new();
        for round in 0.. {
            if is_over(round) {
                break;
            }
            let id = format!("{number}.{round}");
            let bytes = [10, 5_000, 70_000][round % 3];
            let posts = (number + round).is_multiple_of(2);
            let (method, body) = if posts { ("POST", "body") } else { ("GET", "") };
            let path = format!("/act.php?do=count&id={id}&bytes={bytes}");
            let answer = client.send(method, &path, body.as_bytes());
            if stage.aid == Aid::None && posts && answer.status == 502 {
                // It ends the client's connection if the socket had been passed.
                if answer.field("connection") == Some("close") {
                    client = connect();
                }
                continue;
            }
            assert_eq!(answer.status, 200, "{} {id}: {}", stage.transport, stage.fpm.log());
            assert!(answer.text() == format!("{id} {body}{}", ".".repeat(bytes)), "{}", stage.transport);
            if posts {
                answered.push(id);
            }
        }
        answered
    };
    let answered = std::thread::scope(|scope| {
        let visits: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || visit(number))).collect();
        meanwhile();
        visits.into_iter().flat_map(|visit| visit.join().expect("a visit")).collect::<Vec<_>>()
    });
    let counted = fs::read_to_string(stage.folder.path("counted")).expect("a client has posted");
    let mut times = HashMap::new();
    counted.lines().for_each(|id| *times.entry(id).or_insert(0) += 1);
    assert!(times.values().all(|times| *times == 1), "{}: something was done twice", stage.transport);
    for id in &answered {
        assert!(times.contains_key(id.as_str()), "{}: {id} was answered, and not done", stage.transport);
    }
}

/// Reloads php-fpm five times while clients ask.
fn reloaded_under_load(stage: &Stage) {
    let is_over = AtomicBool::new(false);
    under_load(
        stage,
        |_| is_over.load(Ordering::Relaxed),
        || {
            let _over = Over(&is_over);
            for _ in 0..5 {
                stage.fpm.reload();
            }
        },
    );
}

#[test]
fn a_reload_under_load() {
    for transport in TRANSPORTS {
        reloaded_under_load(&Stage::with_pool(transport, PATIENT, ""));
    }
}

/// php-fpm without the library leaves the client's socket alone: a request that ends unanswered can be sent again.
#[test]
fn a_reload_under_load_without_the_library() {
    for transport in ["shm", "passfd"] {
        reloaded_under_load(&Stage::with_aid(transport, Aid::None, PATIENT, ""));
    }
}

#[test]
fn workers_that_end_after_some_requests() {
    for transport in TRANSPORTS {
        for manager in [
            "pm = static\n",
            "pm = ondemand\npm.process_idle_timeout = 1s\n",
            "pm = dynamic\npm.start_servers = 1\npm.min_spare_servers = 1\npm.max_spare_servers = 1\n",
        ] {
            let stage = Stage::with_pool(transport, &format!("{manager}pm.max_requests = 7\n{PATIENT}"), "");
            under_load(&stage, |round| round == 40, || {});
        }
    }
}
