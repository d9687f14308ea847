//! A worker process is killed in the midst of its work.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::{Signal, kill_process};

use crate::common::folder::Folder;
use crate::common::server::{PATIENCE, wait_until};
use crate::watched::Watched;

crate::architectures::under_every_architecture! { by name: a_worker_killed_under_load_comes_back }

/// Of several processes.
mod away {
    under_each_architecture! { auto = "auto", others_serve_the_queue_of_a_crashing_worker }
    under_each_architecture! { n_copy = "n-copy", others_serve_the_queue_of_a_crashing_worker }
    under_each_architecture! { symped = "symped", others_serve_the_queue_of_a_crashing_worker }

    use super::others_serve_the_queue_of_a_crashing_worker;
}

/// Goal: a killed worker loses only its current requests: others or its successor serve connections that were not
/// accepted yet. Method: clients send requests on new connections without a pause while each worker in turn is
/// killed; each client may lose only its open connection.
fn a_worker_killed_under_load_comes_back(architecture: &str) {
    let folder = Folder::new();
    folder.write("small.txt", "small");
    let server = Watched::start(folder, architecture, &[]);
    let address = server.server().address();
    let (enough, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let first = server.server().workers();
    let lost: usize = std::thread::scope(|scope| {
        let load = || {
            let mut lost = 0;
            while !enough.load(Ordering::Relaxed) {
                match exchange(address) {
                    true => _ = answered.fetch_add(1, Ordering::Relaxed),
                    false => lost += 1,
                }
            }
            lost
        };
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(load)).collect();
        for &worker in &first {
            let before = answered.load(Ordering::Relaxed);
            wait_until("the load runs", || answered.load(Ordering::Relaxed) > before + 20);
            kill_process(worker, Signal::KILL).expect("killed");
            wait_until("there are as many workers again, and not this one", || {
                let workers = server.server().workers();
                workers.len() == first.len() && !workers.contains(&worker)
            });
        }
        let before = answered.load(Ordering::Relaxed);
        wait_until("the load runs", || answered.load(Ordering::Relaxed) > before + 20);
        enough.store(true, Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().expect("a client")).sum()
    });
    assert!(lost <= CLIENTS * first.len(), "{lost} exchanges lost");
    // Connections of dead workers are not counted as open for ever.
    wait_until("no connection is open", || server.metric("baton_connections_open") == 0);
}

/// Goal: while a repeatedly crashing worker is away for seconds, no new connection waits for it, and when it is back
/// it alone serves its queue again. Method: a worker is killed until its restart is delayed for some seconds;
/// meanwhile all requests on new connections are answered.
fn others_serve_the_queue_of_a_crashing_worker(architecture: &str) {
    let folder = Folder::new();
    folder.write("small.txt", "small");
    let server = Watched::start(folder, architecture, &[]);
    let address = server.server().address();
    let sockets = server.sockets();
    let other = server.server().workers()[1];
    let crashing = || server.server().workers().into_iter().find(|worker| *worker != other);
    for _ in 0..CRASHES {
        wait_until("it is there", || crashing().is_some());
        // At any moment of its life, that of its start, too.
        kill_process(crashing().expect("found"), Signal::KILL).expect("killed");
        wait_until("it is gone", || crashing().is_none());
    }
    for number in 0..EXCHANGES {
        assert!(exchange(address), "request {number} is answered");
    }
    assert_eq!(crashing(), None, "all were answered before it was back");

    wait_until("it is back, and has its sockets for itself", || {
        crashing().is_some() && server.metric("baton_workers_serving") == 2 && server.sockets() == sockets
    });
    (0..EXCHANGES).for_each(|_| assert!(exchange(address)));
}

/// Whether a request on a new connection is answered in full.
fn exchange(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let sent = stream.write_all(b"GET /small.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let mut bytes = Vec::new();
    sent.is_ok() && stream.read_to_end(&mut bytes).is_ok() && bytes.ends_with(b"\r\n\r\nsmall")
}

const CLIENTS: usize = 3;

/// After so many the restart is delayed by 6.4 seconds.
const CRASHES: usize = 7;

const EXCHANGES: usize = 100;
