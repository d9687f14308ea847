//! The life of workers: started, recycled, reloaded, killed.

use std::io::{self, Read, Write};

use rustix::process::Signal;

use super::support::server::MODERN;
use super::support::{Client, Fpm, Outcome, Request, Server, wait_for};

/// Prints the worker's process id.
const PID: &str = "<?php echo getmypid();";

/// One answered request on a connection of its own.
fn answer(fpm: &Fpm, request: &Request) -> String {
    let request = Request { keep_connection: false, ..request.clone() };
    let (outcome, response) = Server::connect(&fpm.socket()).answer(&request, MODERN);
    outcome.complete();
    response.text()
}

#[test]
fn status_and_ping_pages_are_answered() {
    let fpm = Fpm::with_one_worker("pm.status_path = /status\nping.path = /ping\nping.response = here\n");
    let page = |path: &str| Request::get(path.to_owned());
    assert_eq!(answer(&fpm, &page("/ping")), "here");
    let status = answer(&fpm, &page("/status"));
    assert!(status.contains("process manager:      static"), "{status}");
    let full = answer(&fpm, &page("/status").query("full&json"));
    assert!(full.starts_with('{') && full.contains("status?full&json"), "{full}");
}

#[test]
fn every_process_manager_answers() {
    for pool in [
        "pm = static\npm.max_children = 3\n",
        "pm = dynamic\npm.max_children = 4\npm.start_servers = 1\npm.min_spare_servers = 1\npm.max_spare_servers = 2\n",
        "pm = ondemand\npm.max_children = 3\npm.process_idle_timeout = 1s\n",
    ] {
        let fpm = Fpm::start(pool);
        let request = Request::get(fpm.script("pid.php", PID));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..20).for_each(|_| assert!(answer(&fpm, &request).parse::<u32>().is_ok())));
            }
        });
    }
}

#[test]
fn workers_are_recycled() {
    let fpm = Fpm::with_one_worker("pm.max_requests = 3\n");
    let request = Request::get(fpm.script("pid.php", PID));
    let workers: Vec<String> = (0..9).map(|_| answer(&fpm, &request)).collect();
    assert_eq!(workers[0], workers[2]);
    assert_ne!(workers[2], workers[3]);
    assert_eq!(workers[6], workers[8]);
}

#[test]
fn a_reload_loses_nothing() {
    let fpm = Fpm::start(
        "pm = static\npm.max_children = 2\nlisten.backlog = 128\n[global]\nprocess_control_timeout = 10s\n",
    );
    let request = Request::get(fpm.script("pid.php", PID));
    let before = answer(&fpm, &request);
    fpm.signal(Signal::USR2);
    wait_for("new workers", || {
        std::fs::read_to_string(fpm.folder().join("log")).ok().filter(|log| log.contains("reloading: execvp"))
    });
    let after = answer(&fpm, &request);
    assert_ne!(before, after);
}

/// Otherwise it would wait for the server, and all others for it: new workers begin when the last of the old has ended.
#[test]
fn a_reload_does_not_wait_for_kept_connections() {
    let fpm = Fpm::start("pm = static\npm.max_children = 2\n[global]\nprocess_control_timeout = 1000s\n");
    let request = Request::get(fpm.script("pid.php", PID));
    let mut kept = [Server::connect(&fpm.socket()), Server::connect(&fpm.socket())];
    let before = kept.each_mut().map(|server| {
        let (outcome, response) = server.answer(&request, MODERN);
        outcome.complete();
        response.text()
    });
    fpm.signal(Signal::USR2);
    for server in &mut kept {
        assert!(!server.read_part(&mut Outcome::default()), "the connection ends without a byte");
    }
    let after = answer(&fpm, &request);
    assert!(!before.contains(&after), "{before:?} {after}");
}

/// Between the end of its last answer and that of its connection, the next request may be sent. The server must see
/// that it was not read: it cannot be sent, or is unread when the connection is closed.
#[test]
fn a_worker_that_leaves_reads_no_request() {
    let fpm = Fpm::with_one_worker("pm.max_requests = 2\n");
    let request = Request::get(fpm.script("pid.php", PID));
    for round in 0..30 {
        let mut server = Server::connect(&fpm.socket());
        for _ in 0..2 {
            server.answer(&request, MODERN).0.complete();
        }
        // Long before it is closed, and when it may be closed already.
        if round % 2 == 1 {
            wait_for("the end", || server.has_ended().then_some(()));
        }
        let begin = [1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0];
        let sent = server.stream.write(&begin).map_err(|error| error.kind());
        if sent != Err(io::ErrorKind::BrokenPipe) {
            let end = server.stream.read(&mut [0]).map_err(|error| error.kind());
            assert_eq!((sent, end), (Ok(begin.len()), Err(io::ErrorKind::ConnectionReset)), "{round}");
        }
    }
}

/// It is killed in the middle of its response: the server learns by the end of the connection, and cuts the client's,
/// of which it has the only copy.
#[test]
fn a_request_that_takes_too_long_ends_with_its_worker() {
    let fpm = Fpm::with_one_worker("request_terminate_timeout = 1s\n");
    let script = fpm.script("long.php", "<?php echo 'begun'; flush(); while (true) usleep(1000);");
    let (mut client, server_end) = Client::connect();
    let mut server = Server::connect(&fpm.socket());
    let outcome = server.offer(&Request::get(script), MODERN, &server_end);
    assert_eq!((outcome.end, outcome.answered, outcome.rest), (None, None, None));
    drop(server_end);
    let response = client.read_response("GET");
    assert_eq!((response.text().as_str(), response.is_complete), ("begun", false));
    let request = Request::get(fpm.script("pid.php", PID));
    assert!(answer(&fpm, &request).parse::<u32>().is_ok(), "there is another worker");
}

#[test]
fn what_workers_say_is_caught() {
    let fpm = Fpm::with_one_worker("catch_workers_output = yes\n");
    let script = fpm.script(
        "say.php",
        "<?php file_put_contents('php://stderr', \"to the log\\n\"); echo 'to the client';",
    );
    assert_eq!(answer(&fpm, &Request::get(script)), "to the client");
    wait_for("the message", || fpm.log().contains("to the log").then_some(()));
}

/// A worker that is asked to end finishes its answer.
#[test]
fn a_graceful_stop_waits_for_the_answer() {
    let fpm = Fpm::start("pm = static\npm.max_children = 1\n[global]\nprocess_control_timeout = 30s\n");
    let script = fpm.script(
        "slow.php",
        "<?php echo 'begun '; flush(); while (!file_exists(__DIR__ . '/go')) { clearstatcache(); usleep(1000); } echo 'done';",
    );
    let (mut client, server_end) = Client::connect();
    let mut server = Server::connect(&fpm.socket());
    let request = Request::get(script);
    server.send_offer(&request, MODERN, &server_end);
    let mut seen = Vec::new();
    while !seen.ends_with(b"begun ") {
        seen.extend(client.read_exactly(1));
    }
    fpm.signal(Signal::QUIT);
    wait_for("the signal", || fpm.log().contains("Finishing").then_some(()));
    std::fs::write(fpm.folder().join("go"), "").expect("a file");
    server.read_outcome(&request).complete();
    drop(server_end);
    let rest = String::from_utf8(client.read_to_end()).expect("text");
    assert!(rest.contains("done") && rest.ends_with("0\r\n\r\n"), "{rest:?}");
}
