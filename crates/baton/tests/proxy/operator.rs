//! What the operator of several origins does and sees: drains, verdicts that last, status and metrics.

use std::fs;
use std::process::Command;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::common::agent::Body;
use crate::common::client::Client;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::manners;
use crate::origin::Origin;
use crate::peers::{TWO_BUSY, ask_as, overloaded, server_of, silent, urls, well};
use crate::site::logged;

/// What the status says of an origin.
fn told(server: &Server, origin: &Origin) -> Value {
    let status: Value = server.status();
    let url = format!("http://{}", origin.address());
    let origins = status["origins"].as_array().expect("origins");
    origins.iter().find(|one| one["origin"] == *url).cloned().unwrap_or_else(|| panic!("{url}: {status}"))
}

/// A sample of the metrics page, by its name and the labels behind those of the origin.
fn metric(server: &Server, name: &str, origin: &Origin, more: &str) -> f64 {
    let admin = *server.addresses().last().expect("an address for monitoring");
    let page = Client::connect(admin).get("/metrics");
    let sample =
        format!("{name}{{site=\"front\",route=\"/\",origin=\"http://{}\"{more}}} ", origin.address());
    let value = page.text().lines().find_map(|line| line.strip_prefix(&sample));
    value.unwrap_or_else(|| panic!("{sample}: {}", page.text())).parse().expect("a number")
}

/// Requests on new connections, so that all workers get some.
fn ask(server: &Server, path: &str, times: usize) {
    (0..times).for_each(|_| assert_eq!(server.get(path).status, 200));
}

fn workers(count: usize) -> String {
    format!("processes = {count}\n[admin]\nlisten = '127.0.0.1:0'\n")
}

/// Goal: a drained origin gets nothing new from any worker, what it has goes on, and it comes back when it is told to.
#[test]
fn an_origin_is_drained_and_comes_back() {
    let origins = [(); 2].map(|()| Origin::start(manners::serve));
    let server = server_of(&workers(2), &urls(&origins.each_ref().map(Origin::address)), "");
    let mut tunnel = server.connect();
    let fields = "Connection: Upgrade\r\nUpgrade: any\r\n";
    tunnel.send(format!("GET /upgrade?drain HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
    assert_eq!(tunnel.head().status, 101);
    assert_eq!(tunnel.take(6), b"hello,");
    let has_tunnel = |origin: &&Origin| !origin.seen("/upgrade").is_empty();
    let drained = origins.iter().find(has_tunnel).expect("an origin has it");
    let other = origins.iter().find(|origin| !has_tunnel(origin)).expect("the other has not");
    let url = format!("http://{}", drained.address());

    let said = server.ctl(&["drain-origin", &url]);
    assert!(said.contains("gets no new requests") && !said.contains("warning"), "{said}");
    ask(&server, "/drained", 20);
    assert_eq!((drained.seen("/drained").len(), other.seen("/drained").len()), (0, 20));
    tunnel.send(b"still here");
    assert_eq!(tunnel.take(10), b"STILL HERE");
    let state = told(&server, drained);
    assert_eq!((&state["state"], &state["in_flight"]), (&"drained".into(), &1.into()));
    assert_eq!(metric(&server, "baton_origin_up", drained, ""), 0.0);
    assert_eq!(metric(&server, "baton_origin_up", other, ""), 1.0);

    server.ctl(&["reload"]);
    ask(&server, "/reloaded", 20);
    assert_eq!(drained.seen("/reloaded").len(), 0);

    let said = server.ctl(&["drain-origin", &format!("http://{}", other.address())]);
    assert!(said.contains("warning: / of front has no other origin"), "{said}");
    assert_eq!(server.get("/nowhere").status, 503);
    assert_eq!(logged(&server, "/nowhere")["origin"]["failure"], "drained");
    assert_eq!(metric(&server, "baton_origin_failures_total", &origins[0], ",reason=\"drained\""), 1.0);

    server.ctl(&["undrain-origin", &format!("{url}/any")]);
    ask(&server, "/back", 20);
    assert_eq!((drained.seen("/back").len(), other.seen("/back").len()), (20, 0));
    tunnel.finish_sending();
    assert_eq!(tunnel.rest(), b"bye");
    wait_until("the end of the tunnel", || told(&server, drained)["in_flight"] == 0);
}

#[test]
fn an_origin_that_is_not_there_is_not_drained() {
    let origin = Origin::start(well);
    let server = server_of(&workers(1), &urls(&[origin.address()]), "");
    let refusal = server.ctl_fails(&["drain-origin", "http://no.example"]);
    assert!(refusal.contains(&format!("origins: http://{}", origin.address())), "{refusal}");
}

/// Goal: a successor knows what its predecessor was told.
#[test]
fn a_drain_survives_an_upgrade() {
    let origins = [(); 2].map(|()| Origin::start(well));
    let server = server_of(&workers(1), &urls(&origins.each_ref().map(Origin::address)), "");
    server.ctl(&["drain-origin", &format!("http://{}", origins[0].address())]);
    server.ctl(&["upgrade"]);
    wait_until("the successor", || told(&server, &origins[1])["state"] == "up");
    assert_eq!(told(&server, &origins[0])["state"], "drained");
}

/// Goal: what one worker finds out is known to the others, to a later configuration and to later workers.
#[test]
fn an_ejection_is_shared_and_lasts() {
    let (busy, good, late) = (Origin::start(overloaded), Origin::start(well), Origin::start(well));
    let two = urls(&[busy.address(), good.address()]);
    let server = server_of(&workers(2), &two, TWO_BUSY);
    // On new connections, so that both workers get some.
    let refused = (0..20).filter(|number| ask_as(&mut server.agent(), *number) == 503).count();
    ask(&server, "/later", 20);
    assert_eq!((refused, busy.seen("/").len()), (2, 2));
    let state = told(&server, &busy);
    assert_eq!((&state["state"], &state["ejections"]), (&"ejected".into(), &1.into()));
    assert!(state["why"].as_str().is_some_and(|why| why.ends_with("after: status 503")), "{state}");
    assert_eq!(metric(&server, "baton_origin_failures_total", &busy, ",reason=\"status\""), 2.0);
    assert_eq!(metric(&server, "baton_origin_requests_total", &busy, ""), 2.0);
    assert_eq!(
        metric(&server, "baton_origin_response_seconds_count", &good, ""),
        good.seen("/").len() as f64
    );

    let file = server.folder().base().join("baton.toml");
    let text = fs::read_to_string(&file).expect("the configuration");
    let three = urls(&[busy.address(), good.address(), late.address()]);
    fs::write(&file, text.replace(&two, &three)).expect("another configuration");
    server.ctl(&["reload"]);
    ask(&server, "/reloaded", 20);
    assert!(!late.seen("/reloaded").is_empty());

    let before = server.workers();
    for worker in &before {
        kill_process(*worker, Signal::KILL).expect("a worker");
    }
    wait_until("other workers", || {
        let status = server.status_text();
        let status: Value = serde_json::from_str(&status).expect("JSON");
        status["workers"].as_array().is_some_and(|workers| workers.iter().all(|one| one["serves"] == true))
            && server.workers().iter().all(|worker| !before.contains(worker))
    });
    ask(&server, "/respawned", 20);
    assert_eq!(busy.seen("/").len(), 2);
}

/// Goal: checks need no client. Method: none asks for anything.
#[test]
fn checks_begin_with_the_server() {
    let origins = [(); 2].map(|()| Origin::start(well));
    let server = server_of(
        &workers(2),
        &urls(&origins.each_ref().map(Origin::address)),
        "health = { path = '/health', interval_ms = 50 }",
    );
    for origin in &origins {
        wait_until("two checks", || origin.seen("/health").len() > 1);
    }
    assert_eq!(told(&server, &origins[0])["requests"], 0, "checks are no requests of clients");
}

/// The table for humans: where each origin stands, and why.
#[test]
fn the_status_shows_origins() {
    let (busy, good) = (Origin::start(overloaded), Origin::start(well));
    let server = server_of(&workers(1), &urls(&[busy.address(), good.address()]), TWO_BUSY);
    (0..4).for_each(|number| _ = ask_as(&mut server.agent(), number));
    let status = server.ctl(&["status", "--all"]);
    let url = format!("http://{}", busy.address());
    let row = status.lines().find(|line| line.trim_start().starts_with(&url)).expect("a row");
    let cells: Vec<_> = row.split_whitespace().collect();
    assert_eq!(cells, [&*url, "front", "/", "ejected", "1", "0", "2", "2", "1"]);
    let why = format!("{url}: ejected: for ");
    assert!(
        status.lines().any(|line| line.starts_with(&why) && line.ends_with("after: status 503")),
        "{status}"
    );
    assert!(!status.contains("application"), "{status}");
}

/// Goal: `baton explain` knows what the running server knows, and shows the head as an origin gets it.
#[test]
fn the_explanation_names_the_origin_that_is_asked() {
    let origins = [(); 3].map(|()| Origin::start(well));
    let [first, second, backup] = origins.each_ref().map(Origin::address);
    let to = format!("['http://{first}', 'http://{second}', {{ to = 'http://{backup}', backup = true }}]");
    let server = server_of(&workers(1), &to, "request_headers = { set = { X-Key = '1' } }");
    let explain = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
        command.args(["explain", "/some/path", "-c"]).arg(server.folder().base().join("baton.toml"));
        let output = command.output().expect("baton explain");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let told = explain();
    for line in [
        format!("origins   http://{first}: is asked"),
        format!("          http://{second}: wrr: its turn comes by weight"),
        format!("          http://{backup}: a backup: asked while all others are out"),
        format!("states    of the running server, process {}", server.pid()),
        "GET /some/path HTTP/1.1".into(),
        "X-Key: 1".into(),
    ] {
        assert!(told.lines().any(|one| one == line), "no line {line:?} in\n{told}");
    }
    server.ctl(&["drain-origin", &format!("http://{first}")]);
    let told = explain();
    for line in [
        format!("origins   http://{first}: drained by `baton ctl drain-origin`"),
        format!("          http://{second}: is asked"),
    ] {
        assert!(told.lines().any(|one| one == line), "no line {line:?} in\n{told}");
    }
    assert!(origins.iter().all(|origin| origin.seen("/").is_empty()), "none was asked");
}

/// Goal: a request whose client leaves is logged with what is known of its origin.
#[test]
fn a_client_that_leaves_is_logged_with_its_origin() {
    let origin = Origin::start(silent);
    let server = server_of(&workers(1), &urls(&[origin.address()]), "");
    // A client of HTTP/2 leaves its socket to a thread.
    for protocol in Protocol::ALL.into_iter().filter(|protocol| !protocol.is_http2()) {
        let path = format!("/left?{protocol:?}");
        let mut agent = server.over(protocol).agent();
        agent.begin("GET", "localhost", &path, "", Body::None);
        wait_until("the request", || !origin.seen(&path).is_empty());
        set_socket_linger(agent.tcp(), Some(Duration::ZERO)).expect("a reset");
        drop(agent);
        let line = logged(&server, &path);
        let part = &line["origin"];
        assert_eq!(line["outcome"], "client-gone", "{line}");
        assert_eq!(
            (&part["name"], &part["tries"]),
            (&format!("http://{}", origin.address()).into(), &1.into())
        );
        assert!(part["connect_us"].is_u64() && part["head_us"].is_null(), "{line}");
    }
}
