//! Clients and bodies that would cost the server more than they are worth.

use std::fs;
use std::io::Read;

use crate::common::agent::{Agent, Body};
use crate::common::decode::decode;
use crate::common::server::Server;
use crate::origins::{ZEROS, wait_until_told};

/// The most memory that workers have had, in KiB.
fn peak_kib(server: &Server) -> u64 {
    let peak = |pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:").map(str::to_owned));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0)
    };
    server.workers().iter().map(|pid| peak(pid.as_raw_nonzero().get())).max().unwrap_or(0)
}

/// Goal: a body that shrinks to nothing does not pile up. Method: 64 MiB of zeros, of which the client gets some kilobytes.
fn a_body_that_compresses_a_thousandfold_takes_little_memory(server: &Server) {
    let mut agent = server.agent();
    let before = peak_kib(server);
    let response = agent.ask("GET", "/origin/zeros", "Accept-Encoding: gzip\r\n");
    assert_eq!(response.field("content-encoding"), Some("gzip"));
    assert!(response.body.len() < ZEROS / 100, "{}", response.body.len());
    let mut decoded = 0;
    let mut reader = flate2::read::GzDecoder::new(&response.body[..]);
    let mut bytes = vec![0; 1 << 20];
    loop {
        match reader.read(&mut bytes).expect("gzip") {
            0 => break,
            count => decoded += count,
        }
    }
    assert_eq!(decoded, ZEROS);
    let grown = peak_kib(server).saturating_sub(before);
    assert!(grown < 32 << 10, "{grown} KiB");
}

/// Goal: what a client does not take stops the origin, and a client that leaves frees all. Method: an endless body; the
/// origin's connection breaks once the client has gone.
fn a_client_that_leaves_ends_the_stream(server: &Server) {
    for coding in ["gzip", "br", "zstd"] {
        let mut agent = server.agent();
        let before = peak_kib(server);
        let name = format!("left-{}", fastrand::u64(..));
        let fields = format!("Accept-Encoding: {coding}\r\n");
        agent.begin("GET", "localhost", &format!("/origin/endless?{name}"), &fields, Body::None);
        assert_eq!(agent.head().field("content-encoding"), Some(coding));
        agent.at_least(256 << 10);
        let grown = peak_kib(server).saturating_sub(before);
        assert!(grown < 32 << 10, "{grown} KiB");
        drop(agent);
        wait_until_told(&name);
    }
    let mut agent = server.agent();
    let response = agent.ask("GET", "/origin/page", "Accept-Encoding: gzip\r\n");
    assert!(!decode("gzip", &response.body).is_empty(), "others are served");
}

/// Goal: clients that read slowly hold no more than their connections do. Method: many that read nothing of an endless body
/// while another one is served.
fn clients_that_read_nothing_keep_no_other_waiting(server: &Server) {
    let idle: Vec<(Agent, String)> = (0..8)
        .map(|_| {
            let mut agent = server.agent();
            let name = format!("idle-{}", fastrand::u64(..));
            let path = format!("/origin/endless?{name}");
            agent.begin("GET", "localhost", &path, "Accept-Encoding: gzip\r\n", Body::None);
            agent.head();
            (agent, name)
        })
        .collect();
    let mut agent = server.agent();
    for _ in 0..3 {
        let response = agent.ask("GET", "/origin/page", "Accept-Encoding: zstd\r\n");
        assert_eq!(response.field("content-encoding"), Some("zstd"));
    }
    for (agent, name) in idle {
        drop(agent);
        wait_until_told(&name);
    }
}

crate::protocols::over_every_protocol!(
    a_body_that_compresses_a_thousandfold_takes_little_memory,
    a_client_that_leaves_ends_the_stream,
    clients_that_read_nothing_keep_no_other_waiting,
);
