//! Monitoring: the admin listener and the control socket.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use serde_json::Value;

use crate::client::get;
use crate::server::{Folder, Server, send_signal};

const ADMIN: &str = "processes = 2\n[admin]\nlisten = \"127.0.0.1:0\"";

/// Reads the page as Prometheus does: every sample has a type, every line is a sample or a comment.
fn metrics(server: &Server) -> HashMap<String, u64> {
    let answer = get(server.admin_address(), "/metrics");
    assert_eq!(answer.status, 200);
    let mut types = HashMap::new();
    let mut samples = HashMap::new();
    for line in answer.text().lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').expect("a type");
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "twice: {line}");
        } else if !line.starts_with("# HELP ") {
            let (sample, value) = line.rsplit_once(' ').expect("a sample");
            let name = sample.split('{').next().expect("a name");
            assert!(types.contains_key(name), "no type: {line}");
            assert!(
                samples.insert(sample.to_owned(), value.parse().expect("a number")).is_none(),
                "twice: {line}"
            );
        }
    }
    samples
}

/// Counts requests over several workers, one of which dies: sums are right and never go back.
#[test]
fn metrics_are_summed_over_workers_dead_and_alive() {
    let server = Server::start(ADMIN);
    let complete = |server: &Server| metrics(server)["baton_requests_total{outcome=\"complete\"}"];
    for _ in 0..16 {
        assert_eq!(get(server.address(), "/").status, 200);
    }
    assert_eq!(get(server.address(), "/none").status, 404);
    server.wait_until("all requests are counted", || complete(&server) == 17);
    assert_eq!(metrics(&server)["baton_responses_total{class=\"4xx\"}"], 1);

    for worker in server.workers() {
        send_signal(worker, Signal::KILL);
    }
    server.wait_until("the workers are back", || metrics(&server)["baton_worker_restarts_total"] == 2);
    assert_eq!(complete(&server), 17);
    assert_eq!(get(server.address(), "/").status, 200);
    server.wait_until("counting goes on", || complete(&server) == 18);
}

/// The other pages.
#[test]
fn status_and_health_are_pages_too() {
    let server = Server::start(ADMIN);
    assert_eq!(get(server.admin_address(), "/healthz").status, 200);
    assert_eq!(get(server.admin_address(), "/").status, 404);
    let page = get(server.admin_address(), "/status");
    let status: Value = serde_json::from_slice(&page.body).expect("JSON");
    assert_eq!(status["pid"], server.pid());
    assert_eq!(status["state"], "serving");
    assert_eq!(status["listeners"][0]["address"], server.address().to_string());
    let engines: Vec<_> =
        status["workers"].as_array().unwrap().iter().map(|worker| &worker["engine"]).collect();
    assert_eq!(engines.len(), 2);
    assert!(engines.iter().all(|engine| engine.is_object()), "{engines:?}");
}

/// The control socket is its owner's alone, and nobody else's place.
#[test]
fn the_control_socket_is_private_and_taken() {
    let server = Server::start("");
    let mode = std::fs::metadata(server.control_socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let other = Folder::new();
    let socket = server.control_socket();
    let text = format!(
        "[[site]]\nlisten = \"127.0.0.1:0\"\nroot = \"site\"\n[server]\ncontrol_socket = \"{}\"",
        socket.display()
    );
    other.write("baton.toml", text.as_bytes());
    let output = other.run_in_vain();
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("a running server listens there"), "{told}");
    assert_eq!(server.status()["state"], "serving");
}

/// Asks a server that is not there.
#[test]
fn ctl_says_that_no_server_listens() {
    let folder = Folder::new();
    let output = crate::server::ctl(&folder.path("control.sock"), &["status"]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("no server listens on") && told.contains("remedy: "), "{told}");
}
