//! A worker process is killed in the midst of its work.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::{Signal, kill_process};

use crate::common::folder::Folder;
use crate::common::server::{PATIENCE, wait_until};
use crate::watched::Watched;

under_each_architecture! { a_worker_killed_under_load_comes_back }

/// Goal: a killed worker costs the exchanges it had in hand, and nothing else: connections that were not accepted
/// yet are served by others or by the next worker. Method: clients ask on new connections without a pause while each
/// worker in turn is killed; each client may lose no more than what it had open at that moment.
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
    // What the dead had open is not counted as open for ever.
    wait_until("no connection is open", || server.metric("baton_connections_open") == 0);
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
