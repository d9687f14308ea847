//! A worker process is killed in the midst of its work.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::{Signal, kill_process};

use crate::common::agent::Body;
use crate::common::folder::Folder;
use crate::common::http2::Http2;
use crate::common::protocol::Protocol;
use crate::common::server::wait_until;
use crate::common::stream::Stream;
use crate::watched::Watched;

crate::architectures::under_every_architecture! { by name: a_worker_killed_under_load_comes_back }

/// Over the other protocols.
mod over {
    one_of! {
        auto = [Protocol::Https, Protocol::H2], a_worker_killed_under_load_comes_back_over;
        |protocol| ("auto", protocol)
    }
    over_http1! { h2c_pipeline = "pipeline", H2c, a_worker_killed_under_load_comes_back_over }

    use super::a_worker_killed_under_load_comes_back_over;
}

/// Of several processes, each with a queue or all with one.
mod away {
    one_of! {
        several = ["auto", "n-copy", "symped"], others_serve_the_queue_of_a_crashing_worker;
        |architecture| (architecture, Protocol::Http)
    }
    one_of! {
        encrypted = [Protocol::Https, Protocol::H2], others_serve_the_queue_of_a_crashing_worker;
        |protocol| ("auto", protocol)
    }

    use super::others_serve_the_queue_of_a_crashing_worker;
}

/// Goal: a killed worker loses only its current requests: others or its successor serve connections that were not
/// accepted yet. Method: clients send requests on new connections without a pause while each worker in turn is
/// killed; each client may lose only its open connection.
fn a_worker_killed_under_load_comes_back(architecture: &str) {
    a_worker_killed_under_load_comes_back_over(architecture, Protocol::Http);
}

fn a_worker_killed_under_load_comes_back_over(architecture: &str, protocol: Protocol) {
    let folder = Folder::new();
    folder.write("small.txt", "small");
    let server = Watched::start_over(protocol, folder, architecture, &[]);
    let address = server.server().address();
    let (enough, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let first = server.server().workers();
    let lost: usize = std::thread::scope(|scope| {
        let load = || {
            let mut lost = 0;
            while !enough.load(Ordering::Relaxed) {
                match exchange(address, protocol) {
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
fn others_serve_the_queue_of_a_crashing_worker(architecture: &str, protocol: Protocol) {
    let folder = Folder::new();
    folder.write("small.txt", "small");
    let server = Watched::start_over(protocol, folder, architecture, &[]);
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
        assert!(exchange(address, protocol), "request {number} is answered");
    }
    assert_eq!(crashing(), None, "all were answered before it was back");

    wait_until("it is back, and has its sockets for itself", || {
        crashing().is_some() && server.metric("baton_workers_serving") == 2 && server.sockets() == sockets
    });
    (0..EXCHANGES).for_each(|_| assert!(exchange(address, protocol)));
}

/// Whether a request on a new connection is answered in full.
fn exchange(address: SocketAddr, protocol: Protocol) -> bool {
    if protocol.is_http2() {
        return Http2::try_connect(address, protocol)
            .is_ok_and(|client| is_answered(client).unwrap_or(false));
    }
    let Ok(mut stream) = Stream::try_connect(address, protocol) else { return false };
    let sent = stream.write_all(b"GET /small.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let mut bytes = Vec::new();
    sent.is_ok() && stream.read_to_end(&mut bytes).is_ok() && bytes.ends_with(b"\r\n\r\nsmall")
}

fn is_answered(mut client: Http2) -> Result<bool, h2::Error> {
    client.begin("GET", "a", "/small.txt", "", Body::None)?;
    client.head()?;
    Ok(client.piece()? == b"small" && client.piece()?.is_empty())
}

const CLIENTS: usize = 3;

/// After so many the restart is delayed by 6.4 seconds.
const CRASHES: usize = 7;

const EXCHANGES: usize = 100;
