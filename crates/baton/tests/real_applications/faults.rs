//! php-fpm whose workers die, are busy, are gone or replaced, and clients that leave: by every transport and over every
//! protocol.

use std::fs;
use std::sync::mpsc;

use serde_json::Value;

use crate::common::agent::{Agent, Body};
use crate::common::client::Response;
use crate::common::folder::{Folder, pattern};
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::fpm::{Aid, Fpm};
use crate::site;

/// php-fpm with two workers, and a server that knows it.
pub(crate) struct Stage {
    pub(crate) folder: Folder,
    pub(crate) fpm: Fpm,
    pub(crate) server: Server,
    pub(crate) transport: &'static str,
    pub(crate) aid: Aid,
}

pub(crate) const TRANSPORTS: [&str; 3] = ["unix", "shm", "passfd"];

/// Workers of php-fpm, and connections to it.
pub(crate) const WORKERS: usize = 2;

/// Of a page that is answered in full: see `act.php`.
const BODY_BYTES: usize = 2000 * 64;

impl Stage {
    /// `settings`: further ones of the route.
    fn set(transport: &'static str, settings: &str) -> Self {
        Self::with_pool(transport, "", settings)
    }

    /// `pool`: further settings of php-fpm's pool.
    pub(crate) fn with_pool(transport: &'static str, pool: &str, settings: &str) -> Self {
        let aid = if transport == "unix" { Aid::None } else { Aid::Preload };
        Self::with_aid(transport, aid, pool, settings)
    }

    /// Sets the stage for a php-fpm that may know nothing of the transport.
    pub(crate) fn with_aid(transport: &'static str, aid: Aid, pool: &str, settings: &str) -> Self {
        let folder = Folder::new();
        folder.write("act.php", include_str!("act.php"));
        let fpm = Fpm::start(&folder, "php", aid, &format!("pm.max_children = {WORKERS}\n{pool}"));
        let base = folder.base().display();
        let fastcgi = format!(
            "to = \"unix:{base}/php.sock\"\nscripts = [\".php\"]\ntransport = \"{transport}\"\n\
             connections_max = {WORKERS}\n{settings}"
        );
        let site = site::of_one_application(&folder.root(), "", &fastcgi);
        let log = "[log]\naccess = \"{base}/access.log\"\nflush_ms = 10\n";
        let server = Server::run(Folder::new(), &format!("{site}{log}"));
        let stage = Self { folder, fpm, server, transport, aid };
        stage.answers();
        stage
    }

    fn ask(&self, protocol: Protocol, query: &str) -> Response {
        self.server.over(protocol).get(&path(query))
    }

    /// A client that has sent a request.
    fn begin(&self, protocol: Protocol, query: &str) -> Agent {
        let mut client = self.server.over(protocol).agent();
        client.begin("GET", "localhost", &path(query), "", Body::None);
        client
    }

    /// That all is well: each worker could be met.
    #[track_caller]
    fn answers(&self) {
        for _ in 0..2 * WORKERS {
            let answer = self.ask(Protocol::Http, "tell");
            assert_eq!(answer.status, 200, "{}: {}", self.transport, self.fpm.log());
        }
    }

    /// The line of the access log that belongs to a query: there must be one.
    #[track_caller]
    fn line(&self, query: &str) -> String {
        let file = self.server.folder().base().join("access.log");
        let request = format!("{} ", path(query));
        let lines = || {
            let log = fs::read_to_string(&file).unwrap_or_default();
            log.lines().filter(|line| line.contains(&request)).map(str::to_owned).collect::<Vec<_>>()
        };
        wait_until("a line in the log", || !lines().is_empty());
        let mut lines = lines();
        assert_eq!(lines.len(), 1, "{}: {lines:?}", self.transport);
        lines.remove(0)
    }

    /// How many requests wait for a worker, once the server has reported.
    fn waiting(&self) -> Option<u64> {
        let status: Value = self.server.status();
        status["workers"][0]["engine"]["loop"]["applications"][0]["waiting"].as_u64()
    }
}

fn path(query: &str) -> String {
    format!("/act.php?do={query}")
}

/// No byte of an answer was sent: the client gets an error, also if its socket had been passed.
#[test]
fn a_worker_that_dies_before_it_answers() {
    for transport in TRANSPORTS {
        let stage = Stage::set(transport, "");
        for protocol in Protocol::ALL {
            let query = format!("die-before&over={protocol:?}");
            assert_eq!(stage.ask(protocol, &query).status, 502, "{transport}, {protocol:?}");
            stage.line(&query);
        }
        stage.answers();
    }
}

/// A truncated response does not look complete.
#[test]
fn a_worker_that_dies_amid_its_answer() {
    for transport in TRANSPORTS {
        let stage = Stage::set(transport, "");
        for protocol in Protocol::ALL {
            let query = format!("die-amid&for=go-{protocol:?}");
            let mut client = stage.begin(protocol, &query);
            let head = client.head();
            assert_eq!((head.status, head.field("content-length")), (200, None), "{transport}, {protocol:?}");
            client.at_least(BODY_BYTES / 2);
            stage.folder.write(&format!("go-{protocol:?}"), "");
            client.body().expect_err("looks complete");
            stage.line(&query);
        }
        stage.answers();
    }
}

#[test]
fn a_worker_that_dies_after_its_answer() {
    for transport in TRANSPORTS {
        let stage = Stage::set(transport, "");
        for (round, protocol) in Protocol::ALL.into_iter().cycle().take(6).enumerate() {
            let query = format!("die-after&round={round}");
            let answer = stage.ask(protocol, &query);
            assert_eq!((answer.status, answer.body.len()), (200, BODY_BYTES), "{transport}, {protocol:?}");
            stage.line(&query);
        }
        stage.answers();
    }
}

/// Goal: a script that writes all the time, but slowly and without `flush()`, makes progress. Method: it takes longer
/// than `timeout_ms`, and all of it would fit into the buffers.
#[test]
fn a_script_that_is_slow_and_never_flushes() {
    std::thread::scope(|scope| {
        for transport in TRANSPORTS {
            for protocol in Protocol::ALL {
                scope.spawn(move || {
                    let stage = Stage::set(transport, "timeout_ms = 2000");
                    let answer = stage.ask(protocol, "trickle");
                    assert_eq!((answer.status, answer.body.len()), (200, 7 * 9000), "{transport}");
                });
            }
        }
    });
}

/// Goal: a script may write more than the region holds before it reads a body that is lent. It hung once: the server's word that
/// the region is free again stood behind the body.
#[test]
fn a_script_that_answers_before_it_reads_its_body() {
    for transport in TRANSPORTS {
        for bodies in ["streamed_bodies_max = 2", "streamed_bodies_max = 0"] {
            let stage = Stage::set(transport, bodies);
            for bytes in [10, 100_000, 100_000, 400_000] {
                let body = pattern(bytes, 1);
                let answer = stage.server.agent().send("POST", &path("answer-first"), &body);
                assert_eq!(answer.status, 200, "{transport}, {bodies}, {bytes} bytes");
                assert!(answer.body[3_000_000..] == body, "{transport}, {bodies}, {bytes} bytes");
            }
            stage.answers();
        }
    }
}

/// PHP learns of it, and its worker is free.
#[test]
fn clients_that_leave_in_the_middle() {
    for transport in TRANSPORTS {
        let stage = Stage::set(transport, "");
        // More often than there are workers.
        for protocol in Protocol::ALL {
            let query = format!("endless&mark=left-{protocol:?}");
            let mut client = stage.begin(protocol, &query);
            client.head();
            client.at_least(BODY_BYTES);
            drop(client);
            let mark = stage.folder.path(&format!("left-{protocol:?}"));
            wait_until("PHP notices", || fs::read_to_string(&mark).is_ok_and(|status| status == "1"));
            stage.line(&query);
        }
        stage.answers();
    }
}

/// Requests without a worker wait for one, and get a 503 with `Retry-After` if there is none in time.
#[test]
fn more_requests_than_workers() {
    const CLIENTS: usize = 10;
    for transport in TRANSPORTS {
        let stage = Stage::set(transport, "queue_ms = 300");
        for protocol in Protocol::ALL {
            let go = format!("go-{protocol:?}");
            let (tell, told) = mpsc::channel();
            std::thread::scope(|scope| {
                for _ in 0..CLIENTS {
                    let (stage, go, tell) = (&stage, &go, tell.clone());
                    scope.spawn(move || tell.send(stage.ask(protocol, &format!("wait&for={go}"))));
                }
                for _ in 0..CLIENTS - WORKERS {
                    let answer = told.recv().expect("an answer");
                    assert_eq!(answer.status, 503, "{transport}, {protocol:?}");
                    assert!(answer.field("retry-after").is_some(), "{transport}: {answer:?}");
                }
                stage.folder.write(&go, "");
                for _ in 0..WORKERS {
                    let answer = told.recv().expect("an answer");
                    assert_eq!((answer.status, answer.text()), (200, "waited"), "{transport}, {protocol:?}");
                }
            });
        }
        stage.answers();

        let stage = Stage::set(transport, "");
        for protocol in Protocol::ALL {
            let go = format!("go-{protocol:?}");
            std::thread::scope(|scope| {
                let ask = || stage.ask(protocol, &format!("wait&for={go}"));
                let asked: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(ask)).collect();
                wait_until("all others wait", || stage.waiting() == Some((CLIENTS - WORKERS) as u64));
                stage.folder.write(&go, "");
                for answer in asked {
                    let answer = answer.join().expect("an answer");
                    assert_eq!((answer.status, answer.text()), (200, "waited"), "{transport}, {protocol:?}");
                }
            });
        }
    }
}

/// No restart of the server is needed to find php-fpm again.
#[test]
fn php_fpm_is_stopped_and_started_again() {
    for transport in TRANSPORTS {
        let mut stage = Stage::set(transport, "");
        let mut clients = Protocol::ALL.map(|protocol| stage.server.over(protocol).agent());
        for round in 0..2 {
            stage.fpm.end();
            for (client, protocol) in clients.iter_mut().zip(Protocol::ALL) {
                for attempt in 0..3 {
                    let query = format!("tell&round={round}.{attempt}.{protocol:?}");
                    assert_eq!(client.get(&path(&query)).status, 502, "{transport}, {protocol:?}");
                    stage.line(&query);
                }
            }
            stage.fpm.start_again(&stage.folder);
            for (client, protocol) in clients.iter_mut().zip(Protocol::ALL) {
                assert_eq!(client.get(&path("tell")).status, 200, "{transport}, {protocol:?}");
            }
        }
    }
}
