//! Monitoring: the admin listener and the control socket.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::client::{Client, Response};
use crate::common::server::{Server, wait_until};
use crate::supervised::{
    admin_address, complaint, ctl, folder, read, run, send_signal, serving, start, status, write,
};

const ADMIN: &str = "processes = 2\n[admin]\nlisten = \"127.0.0.1:0\"";

fn admin(server: &Server, path: &str) -> Response {
    Client::connect(admin_address(server)).get(path)
}

/// Reads the page as Prometheus does: every sample has a type, every line is a sample or a comment.
fn metrics(server: &Server) -> HashMap<String, u64> {
    let answer = admin(server, "/metrics");
    assert_eq!(answer.status, 200);
    let mut types = HashMap::new();
    let mut samples = HashMap::new();
    for line in answer.text().lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').expect("a type");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "twice: {line}");
        } else if !line.starts_with("# HELP ") {
            let (sample, value) = line.rsplit_once(' ').expect("a sample");
            let name = sample.split('{').next().expect("a name");
            let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let is_histogram =
                of_histogram.is_some_and(|name| types.get(name).is_some_and(|kind| kind == "histogram"));
            assert!(is_histogram || types.contains_key(name), "no type: {line}");
            let value: f64 = value.parse().expect("a number");
            assert!(samples.insert(sample.to_owned(), value as u64).is_none(), "twice: {line}");
        }
    }
    samples
}

/// Counts requests over several workers, one of which dies: sums are right and never decrease.
#[test]
fn metrics_are_summed_over_workers_dead_and_alive() {
    let server = start(ADMIN);
    let complete = |server: &Server| metrics(server)["baton_requests_total{outcome=\"complete\"}"];
    for _ in 0..16 {
        assert_eq!(server.get("/").status, 200);
    }
    assert_eq!(server.get("/none").status, 404);
    wait_until("all requests are counted", || complete(&server) == 17);
    assert_eq!(metrics(&server)["baton_responses_total{class=\"4xx\"}"], 1);

    for worker in serving(&server) {
        send_signal(worker, Signal::KILL);
    }
    wait_until("the workers are back", || metrics(&server)["baton_worker_restarts_total"] == 2);
    assert_eq!(complete(&server), 17);
    assert_eq!(server.get("/").status, 200);
    wait_until("counting goes on", || complete(&server) == 18);
}

/// The other pages.
#[test]
fn status_and_health_are_pages_too() {
    let server = start(ADMIN);
    assert_eq!(admin(&server, "/healthz").status, 200);
    assert_eq!(admin(&server, "/none").status, 404);
    let page = admin(&server, "/status");
    let status: Value = serde_json::from_slice(&page.body).expect("JSON");
    assert_eq!(status["pid"], server.pid().as_raw_nonzero().get());
    assert_eq!(status["state"], "serving");
    assert_eq!(status["listeners"][0]["address"], server.address().to_string());
    let engines: Vec<_> =
        status["workers"].as_array().unwrap().iter().map(|worker| &worker["engine"]).collect();
    assert_eq!(engines.len(), 2);
    assert!(engines.iter().all(|engine| engine.is_object()), "{engines:?}");
}

/// Only its owner may open the control socket, and no other server takes its path.
#[test]
fn the_control_socket_is_private_and_taken() {
    let server = start("");
    let mode = std::fs::metadata(server.folder().base().join("control")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let other = folder();
    let socket = server.folder().base().join("control");
    let text = format!(
        "[[site]]\nlisten = \"127.0.0.1:0\"\nroot = \"root\"\n[server]\ncontrol_socket = \"{}\"",
        socket.display()
    );
    write(&other, "baton.toml", text);
    let told = complaint(run(&other).output().unwrap());
    assert!(told.contains("a running server listens there"), "{told}");
    assert_eq!(status(&server)["state"], "serving");
}

/// What cannot be purged is refused with its reason, over the control socket and by the admin listener.
#[test]
fn purges_need_something_that_is_cached() {
    let server = start(ADMIN);
    let refused = |what: &[&str]| complaint(ctl(server.folder(), &[&["purge"], what].concat()));
    assert!(refused(&["--all"]).contains("no route has `cache`"));
    let bare = ctl(server.folder(), &["purge"]);
    assert_eq!(bare.status.code(), Some(2));
    let usage = String::from_utf8(bare.stderr).expect("text");
    assert!(usage.contains("<URL|--prefix <URL>|--tag <TAG>|--all>"), "{usage}");
    let mut client = Client::connect(admin_address(&server));
    client.send(
        "POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    );
    let response = client.response();
    assert_eq!((response.status, response.text()), (403, "admin.purge is off\n"));
}

/// Attacks as a page of another site does, whose name has come to lead to the listener (DNS rebinding), or which has a browser
/// send a purge.
#[test]
fn pages_of_other_sites_get_nothing() {
    let server = start(&format!("{ADMIN}\npurge = true\nhosts = [\"monitoring.example\"]"));
    let status = |server: &Server, host: &str, path: &str| {
        Client::connect(admin_address(server)).ask_host(host, "GET", path, "").status
    };
    for path in ["/", "/status", "/metrics", "/healthz", "/none"] {
        let answer = Client::connect(admin_address(&server)).ask_host("evil.example", "GET", path, "");
        assert_eq!(answer.status, 421, "{path}");
        assert!(answer.text().contains("`admin.hosts`"), "{}", answer.text());
    }
    for host in ["monitoring.example:9000", "localhost", "127.0.0.1:1", "[::1]"] {
        assert_eq!(status(&server, host, "/healthz"), 200, "{host}");
    }
    let purge = |host: &str, fields: &str| {
        let fields = format!("{fields}Content-Type: application/json\r\nContent-Length: 0\r\n");
        Client::connect(admin_address(&server)).ask_host(host, "POST", "/purge", &fields).status
    };
    assert_eq!(purge("evil.example", "Origin: http://evil.example\r\n"), 421);
    assert_eq!(purge("localhost", "Origin: http://evil.example\r\n"), 403);
    assert_eq!(purge("localhost", "Sec-Fetch-Site: cross-site\r\n"), 403);
    assert_eq!(purge("localhost", ""), 400, "what no browser sends is read");
    // Names change without a restart.
    let text = read(&server, "baton.toml").replace("monitoring.example", "other.example");
    write(server.folder(), "baton.toml", text);
    server.ctl(&["reload"]);
    assert_eq!(status(&server, "monitoring.example", "/healthz"), 421);
    assert_eq!(status(&server, "other.example", "/healthz"), 200);
}

/// Asks a server that is not there.
#[test]
fn ctl_says_that_no_server_listens() {
    let told = complaint(ctl(&folder(), &["status"]));
    assert!(told.contains("no server listens on") && told.contains("remedy: "), "{told}");
}
