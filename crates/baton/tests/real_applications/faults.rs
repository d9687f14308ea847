//! php-fpm whose workers die, are busy, are gone or replaced, and clients that leave: by every transport.

use std::fs;
use std::sync::mpsc;

use serde_json::Value;

use crate::common::client::Response;
use crate::common::folder::Folder;
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

    fn ask(&self, query: &str) -> Response {
        let mut client = self.server.connect();
        client.send(request(query));
        client.answer_to("GET")
    }

    /// All that comes on a connection that the server is asked to end after its answer.
    fn answer_or_end(&self, query: &str) -> Vec<u8> {
        let mut client = self.server.connect();
        client.send(request(query).replace("Host:", "Connection: close\r\nHost:"));
        client.until_the_end()
    }

    /// That all is well: each worker could be met.
    #[track_caller]
    fn answers(&self) {
        for _ in 0..2 * WORKERS {
            let answer = self.ask("tell");
            assert_eq!(answer.status, 200, "{}: {}", self.transport, self.fpm.log());
        }
    }

    /// The line of the access log that belongs to a query: there must be one.
    #[track_caller]
    fn line(&self, query: &str) -> String {
        let file = self.server.folder().base().join("access.log");
        let request = format!("/act.php?do={query} ");
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
        let status: Value = serde_json::from_str(&self.server.ctl(&["status", "--json"])).expect("JSON");
        status["workers"][0]["engine"]["loop"]["applications"][0]["waiting"].as_u64()
    }
}

fn request(query: &str) -> String {
    format!("GET /act.php?do={query} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// No byte of an answer was sent: the client gets an error, also if its socket had been passed.
#[test]
fn a_worker_that_dies_before_it_answers() {
    for transport in TRANSPORTS {
        let stage = Stage::set(transport, "");
        let got = stage.answer_or_end("die-before");
        assert!(got.starts_with(b"HTTP/1.1 502 "), "{transport}: {}", String::from_utf8_lossy(&got));
        stage.line("die-before");
        stage.answers();
    }
}

/// A truncated response does not look complete.
#[test]
fn a_worker_that_dies_amid_its_answer() {
    for transport in TRANSPORTS {
        let stage = Stage::set(transport, "");
        let mut client = stage.server.connect();
        client.send(request("die-amid&for=go"));
        let head = client.head();
        assert_eq!((head.status, head.field("transfer-encoding")), (200, Some("chunked")), "{transport}");
        client.take(BODY_BYTES / 2);
        stage.folder.write("go", "");
        let got = client.until_the_end();
        assert!(!got.ends_with(b"\r\n0\r\n\r\n"), "{transport}: {} bytes that look complete", got.len());
        stage.line("die-amid&for=go");
        stage.answers();
    }
}

#[test]
fn a_worker_that_dies_after_its_answer() {
    for transport in TRANSPORTS {
        let stage = Stage::set(transport, "");
        for round in 0..3 {
            let query = format!("die-after&round={round}");
            let answer = stage.ask(&query);
            assert_eq!((answer.status, answer.body.len()), (200, BODY_BYTES), "{transport}");
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
            scope.spawn(move || {
                let stage = Stage::set(transport, "timeout_ms = 2000");
                let answer = stage.ask("trickle");
                assert_eq!((answer.status, answer.body.len()), (200, 7 * 9000), "{transport}");
            });
        }
    });
}

/// PHP learns of it, and its worker is free.
#[test]
fn clients_that_leave_in_the_middle() {
    for transport in TRANSPORTS {
        let stage = Stage::set(transport, "");
        for round in 0..2 * WORKERS {
            let query = format!("endless&mark=left{round}");
            let mut client = stage.server.connect();
            client.send(request(&query));
            client.take(BODY_BYTES);
            drop(client);
            let mark = stage.folder.path(&format!("left{round}"));
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
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                let (stage, tell) = (&stage, tell.clone());
                scope.spawn(move || tell.send(stage.ask("wait&for=go")));
            }
            for _ in 0..CLIENTS - WORKERS {
                let answer = told.recv().expect("an answer");
                assert_eq!(answer.status, 503, "{transport}");
                assert!(answer.field("retry-after").is_some(), "{transport}: {answer:?}");
            }
            stage.folder.write("go", "");
            for _ in 0..WORKERS {
                let answer = told.recv().expect("an answer");
                assert_eq!((answer.status, answer.text()), (200, "waited"), "{transport}");
            }
        });
        stage.answers();

        let stage = Stage::set(transport, "");
        std::thread::scope(|scope| {
            let asked: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| stage.ask("wait&for=go"))).collect();
            wait_until("all others wait", || stage.waiting() == Some((CLIENTS - WORKERS) as u64));
            stage.folder.write("go", "");
            for answer in asked {
                let answer = answer.join().expect("an answer");
                assert_eq!((answer.status, answer.text()), (200, "waited"), "{transport}");
            }
        });
    }
}

/// No restart of the server is needed to find php-fpm again.
#[test]
fn php_fpm_is_stopped_and_started_again() {
    for transport in TRANSPORTS {
        let mut stage = Stage::set(transport, "");
        let mut client = stage.server.connect();
        for round in 0..2 {
            stage.fpm.end();
            for attempt in 0..3 {
                client.send(request(&format!("tell&round={round}.{attempt}")));
                assert_eq!(client.answer_to("GET").status, 502, "{transport}");
                stage.line(&format!("tell&round={round}.{attempt}"));
            }
            stage.fpm.start_again(&stage.folder);
            client.send(request("tell"));
            assert_eq!(client.answer_to("GET").status, 200, "{transport}");
        }
    }
}
