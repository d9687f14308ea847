//! Log files: who may read them, and how they are exchanged.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;

use crate::client::get;
use crate::server::{ANY_PORT, Server};

const LOGS: &str = "processes = 2\n[log]\naccess = \"access.log\"\nerror = \"error.log\"\nflush_ms = 10";

/// Renames the logs as logrotate does and sends USR1. What comes later is in new files, nothing is lost.
#[test]
fn logs_are_reopened_after_a_rename() {
    let server = Server::start(LOGS);
    get(server.address(), "/?before");
    server.wait_until("the request is logged", || server.folder.read("access.log").contains("/?before"));
    let mode = fs::metadata(server.folder.path("access.log")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);

    for name in ["access.log", "error.log"] {
        fs::rename(server.folder.path(name), server.folder.path(&format!("{name}.1"))).unwrap();
    }
    server.signal(Signal::USR1);
    server.wait_until("the new files are there", || {
        server.folder.path("access.log").exists() && server.folder.path("error.log").exists()
    });
    server.wait_until("new requests are in the new file", || {
        get(server.address(), "/?after");
        server.folder.read("access.log").contains("/?after")
    });
    assert!(server.folder.read("access.log.1").contains("/?before"));
    assert!(!server.folder.read("access.log").contains("/?before"));
    assert!(server.folder.read("error.log.1").contains("reopen-logs: signal 10"));

    server.ctl_ok(&["reload"]);
    server.wait_until("the master writes to the new log", || {
        server.folder.read("error.log").contains("reloaded")
    });
}

/// Takes away the place for the logs: the old files stay in use, and whoever asked is told.
#[test]
fn logs_that_cannot_be_reopened_stay() {
    let server = Server::start("[log]\naccess = \"access.log\"\nflush_ms = 10");
    server.folder.write("logs/keep", b"");
    let rest = "[log]\naccess = \"logs/access.log\"\nflush_ms = 10";
    server.folder.configure(ANY_PORT, "site", rest);
    server.ctl_ok(&["reload"]);
    server.wait_until("requests are in the new file", || {
        get(server.address(), "/?moved");
        server.folder.read("logs/access.log").contains("/?moved")
    });

    fs::rename(server.folder.path("logs"), server.folder.path("gone")).unwrap();
    let output = server.ctl(&["reopen-logs"]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("there is no directory") && told.contains("mkdir -p"), "{told}");
    server.wait_until("requests are in the old file", || {
        get(server.address(), "/?still");
        server.folder.read("gone/access.log").contains("/?still")
    });
}

/// An error log takes what the server has to say, after it said on the terminal what it serves.
#[test]
fn the_error_log_is_a_file() {
    let mut server = Server::start("[log]\nerror = \"error.log\"");
    assert!(server.folder.read("error.log").contains("notice: baton "));
    server.signal(Signal::TERM);
    server.ended();
    let log = server.folder.read("error.log");
    assert!(log.contains("stop: signal 15 (SIGTERM)") && log.trim_end().ends_with("notice: ended"), "{log}");
    assert!(!server.said().contains("ended"));
}
