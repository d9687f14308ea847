//! The system calls of a request. In a test binary of its own, because strace runs this binary to count its calls.

#[path = "suite/common/mod.rs"]
#[expect(dead_code, reason = "the suite needs more of it")]
mod common;

use std::collections::BTreeMap;
use std::process::Command;

use baton_upstream::{Request, TransportChoice};

use common::app::{App, Offered};
use common::driver::Driver;
use common::{application, client, get, handed};

/// Requests whose calls are counted.
const REQUESTS: u64 = 100;

/// Goal: under every transport, a request costs one message and one read, besides the wait that all events share. Method:
/// this test starts itself under strace, to serve requests between two marks.
#[test]
fn a_request_is_one_message_and_one_read() {
    for transport in ["plain", "shm", "passfd"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("trace");
        let traced = Command::new("strace")
            .args(["-f", "-o"])
            .arg(&file)
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "serve", "--nocapture"])
            .env("TRANSPORT", transport)
            .output()
            .expect("strace (scripts/setup-tests installs it)");
        assert!(traced.status.success(), "{traced:?}");
        let calls = counted(&std::fs::read_to_string(&file).unwrap());
        let of = |name: &str| calls.get(name).copied().unwrap_or(0);
        let message = if transport == "passfd" { "sendmsg" } else { "sendto" };
        assert_eq!((of(message), of("read")), (REQUESTS, REQUESTS), "{transport}: {calls:?}");
        // At least one wait for each answer: the test's loop waits for a few milliseconds at a time.
        assert!(of("epoll_wait") >= REQUESTS, "{transport}: {calls:?}");
        let others: u64 =
            calls.iter().filter(|(name, _)| !EXPECTED.contains(&name.as_str())).map(|call| call.1).sum();
        assert_eq!(others, 0, "{transport}: {calls:?}");
    }
}

/// The calls allowed: those above, and those of the allocator.
const EXPECTED: [&str; 10] = [
    "sendmsg",
    "sendto",
    "read",
    "epoll_wait",
    "epoll_pwait",
    "brk",
    "mmap",
    "munmap",
    "mprotect",
    "madvise",
];

/// The calls between the marks, by the thread that made the marks.
fn counted(trace: &str) -> BTreeMap<String, u64> {
    let mut marks = trace.lines().filter(|line| line.contains(MARK));
    let thread = marks.next().and_then(|line| line.split_whitespace().next()).expect("the first mark");
    assert!(marks.next().is_some(), "the second mark");
    let mut calls = BTreeMap::new();
    let own = trace.lines().filter(|line| line.split_whitespace().next() == Some(thread));
    for line in own.skip_while(|line| !line.contains(MARK)).skip(1).take_while(|line| !line.contains(MARK)) {
        let call = line[thread.len()..].trim_start();
        if let Some((name, _)) = call.split_once('(')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            *calls.entry(name.replace("epoll_pwait", "epoll_wait")).or_default() += 1;
        }
    }
    calls
}

const MARK: &str = "a-mark-for-strace";

/// The code to trace. Without strace it tests that requests share one connection.
#[test]
fn serve() {
    let transport = match std::env::var("TRANSPORT").as_deref() {
        Ok("shm") => TransportChoice::Shm,
        Ok("passfd") => TransportChoice::PassFd,
        _ => TransportChoice::Plain,
    };
    let app = App::start(|peer| {
        while let Some(mut asked) = peer.request() {
            match std::mem::take(&mut asked.offer) {
                Offered::PassFd { client, .. } => {
                    drop(client);
                    peer.answered(&asked, 0);
                }
                Offered::Shm(ring) => {
                    peer.share_and_end(&asked, &ring, b"X-A: b\n\nhello");
                }
                Offered::Nothing => {
                    peer.answer_at_once(&asked, b"X-A: b\n\nhello");
                }
            }
        }
    });
    let application = application(&app, |settings| settings.transport = transport);
    let (server, _client) = client();
    let request = || -> Request {
        if transport == TransportChoice::PassFd { handed(&application, &server) } else { get(&application) }
    };
    let mut driver = Driver::new();
    driver.ask(0, request());
    let _ = std::fs::metadata(MARK);
    for id in 1..=REQUESTS {
        driver.ask(id, request());
    }
    let _ = std::fs::metadata(MARK);
    assert_eq!(app.accepted(), 1);
}
