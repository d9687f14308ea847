//! A peer that dies, hangs, or returns: no address is dead for longer than an interval of questions.

use rustix::process::Signal;

use crate::common::server::wait_until;
use crate::crawler::Crawler;
use crate::servers::{Servers, Settings, get};

#[test]
fn documents_of_a_peer_that_dies_come_home() {
    let mut servers = Servers::start(1, Settings::default());
    let index = format!("{}/", servers.url(0));
    servers.busy_until("two documents are away", |servers| servers.announced().len() >= 2);
    let mut crawler = Crawler::default();
    assert_eq!(crawler.visit(&index), [""; 0]);
    drop(servers.peers[0].take());
    wait_until("all documents are at home", || servers.announced().is_empty());
    let page = get(&index, "");
    assert!(!page.text().contains("~migrate"), "{}", page.text());
    assert_eq!(Crawler::default().visit(&index), [""; 0]);
    assert!(servers.home.said().contains("no word from"), "{}", servers.home.said());

    // It returns without any memory: addresses that were given out before work again, and documents move again.
    servers.restart(0, Settings::default());
    wait_until("every address works", || crawler.dead().is_empty());
    servers.busy_until("a document is away again", |servers| !servers.announced().is_empty());
    assert_eq!(Crawler::default().visit(&index), [""; 0]);
}

#[test]
fn a_peer_that_hangs_is_given_up() {
    let servers = Servers::start(1, Settings::default());
    servers.busy_until("a document is away", |servers| !servers.announced().is_empty());
    let peer = servers.peers[0].as_ref().expect("a peer");
    let all: Vec<_> = peer.workers().into_iter().chain([peer.pid()]).collect();
    let signal = |signal| {
        for process in &all {
            rustix::process::kill_process(*process, signal).expect("a signal");
        }
    };
    signal(Signal::STOP);
    wait_until("all documents are at home", || servers.announced().is_empty());
    assert_eq!(Crawler::default().visit(&format!("{}/", servers.url(0))), [""; 0]);
    signal(Signal::CONT);
}

#[test]
fn a_home_server_that_starts_anew_has_all_its_documents() {
    let mut servers = Servers::start(1, Settings::default());
    let index = format!("{}/", servers.url(0));
    servers.busy_until("two documents are away", |servers| servers.announced().len() >= 2);
    let mut crawler = Crawler::default();
    assert_eq!(crawler.visit(&index), [""; 0]);
    // The process of documents dies; the master starts another one.
    let status = servers.home.status_text();
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    let pid = status["documents"]["pid"].as_i64().expect("a process") as i32;
    let process = rustix::process::Pid::from_raw(pid).expect("a process");
    rustix::process::kill_process(process, Signal::KILL).expect("a signal");
    wait_until("another process has begun", || {
        let status = servers.home.status_text();
        let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
        status["documents"]["pid"].as_i64().is_some_and(|now| now != i64::from(pid))
    });
    wait_until("every address works", || crawler.dead().is_empty());
    servers.busy_until("a document is away again", |servers| !servers.announced().is_empty());
    assert_eq!(crawler.visit(&index), [""; 0]);
    let _ = &mut servers;
}
