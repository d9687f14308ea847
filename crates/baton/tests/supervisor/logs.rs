//! Log files: permissions and rotation.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use crate::common::server::wait_until;
use crate::supervised::{ANY_PORT, configure, read, refusal, start, write};

const LOGS: &str = "processes = 2\n[log]\naccess = \"access.log\"\nerror = \"error.log\"\nflush_ms = 10";

/// Renames the logs as logrotate does and sends USR1. Later lines are in new files, none is lost.
#[test]
fn logs_are_reopened_after_a_rename() {
    let server = start(LOGS);
    server.get("/?before");
    wait_until("the request is logged", || read(&server, "access.log").contains("/?before"));
    let mode = fs::metadata(server.folder().base().join("access.log")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);

    for name in ["access.log", "error.log"] {
        fs::rename(server.folder().base().join(name), server.folder().base().join(format!("{name}.1")))
            .unwrap();
    }
    server.signal(Signal::USR1);
    wait_until("the new files exist", || {
        server.folder().base().join("access.log").exists()
            && server.folder().base().join("error.log").exists()
    });
    wait_until("new requests are in the new file", || {
        server.get("/?after");
        read(&server, "access.log").contains("/?after")
    });
    assert!(read(&server, "access.log.1").contains("/?before"));
    assert!(!read(&server, "access.log").contains("/?before"));
    assert!(read(&server, "error.log.1").contains("reopen-logs: signal 10"));

    server.ctl(&["reload"]);
    wait_until("the master writes to the new log", || read(&server, "error.log").contains("reloaded"));
}

/// Removes the folder of the logs: the old files stay in use, and the command reports it.
#[test]
fn logs_that_cannot_be_reopened_stay() {
    let server = start("[log]\naccess = \"access.log\"\nflush_ms = 10");
    write(server.folder(), "logs/keep", b"");
    let rest = "[log]\naccess = \"logs/access.log\"\nflush_ms = 10";
    configure(server.folder(), ANY_PORT, "root", rest);
    server.ctl(&["reload"]);
    wait_until("requests are in the new file", || {
        server.get("/?moved");
        read(&server, "logs/access.log").contains("/?moved")
    });

    fs::rename(server.folder().base().join("logs"), server.folder().base().join("gone")).unwrap();
    let told = refusal(&server, "reopen-logs");
    assert!(told.contains("there is no directory") && told.contains("mkdir -p"), "{told}");
    wait_until("requests are in the old file", || {
        server.get("/?still");
        read(&server, "gone/access.log").contains("/?still")
    });
}

/// A target may have bytes that are not ASCII; the log has their percent-encoding, as `REQUEST_URI` has.
#[test]
fn targets_are_logged_as_uris() {
    let server = start("[log]\naccess = \"access.log\"\nflush_ms = 10");
    let mut client = server.connect();
    client.send(b"GET /\xc3\xa4?\xe4 HTTP/1.2\r\nHost: a\r\n\r\n");
    assert_eq!(client.response().status, 404);
    let line = "\"GET /%C3%A4?%E4 HTTP/1.2\" 404";
    wait_until("the request is logged", || read(&server, "access.log").contains(line));
}

/// The server prints its addresses on the terminal; later messages go to the error log.
#[test]
fn the_error_log_is_a_file() {
    let mut server = start("[log]\nerror = \"error.log\"");
    assert!(read(&server, "error.log").contains("notice: baton "));
    server.signal(Signal::TERM);
    server.ended();
    let log = read(&server, "error.log");
    assert!(log.contains("stop: signal 15 (SIGTERM)") && log.trim_end().ends_with("notice: ended"), "{log}");
    assert!(!server.said().contains("ended"));
}
