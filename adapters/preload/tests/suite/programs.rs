//! Other programs: with their own FastCGI code, with libfcgi, and without FastCGI.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use super::support::pattern::{self, assert_pattern};
use super::support::program::{Program, installed, preloaded};
use super::support::server::MODERN;
use super::support::{Request, Server, wait_for};

#[test]
fn php_cgi_answers_as_php_fpm_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let php_cgi = installed("php-cgi", &["/usr/bin/php-cgi8.2", "/usr/bin/php-cgi"]);
    for children in ["0", "2"] {
        let mut command = preloaded(&php_cgi);
        command
            .arg("-n")
            .arg("-b")
            .arg(&socket)
            .env("PHP_FCGI_CHILDREN", children)
            .env("PHP_FCGI_MAX_REQUESTS", "50");
        let _program = Program::start(&mut command);
        wait_for("php-cgi", || UnixStream::connect(&socket).ok());
        let script = folder.path().join("bytes.php");
        fs::write(&script, pattern::SCRIPT).expect("a script");
        for bytes in [1, 10_000, 1_000_000] {
            let request =
                Request::get(script.display().to_string()).query(format!("bytes={bytes}&step=30000"));
            let request = request.param("REDIRECT_STATUS", "200");
            let (outcome, response) = Server::connect(&socket).answer(&request, MODERN);
            outcome.complete();
            assert_pattern(&response.body, bytes);
            let outcome = Server::connect(&socket).plain(&request);
            assert!(outcome.stdout.ends_with(&pattern::pattern(bytes)));
        }
        fs::remove_file(&socket).expect("a socket");
    }
}

/// Linked against the distribution's libfcgi.
#[test]
fn programs_with_libfcgi_answer_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let fcgiwrap = installed("fcgiwrap", &["/usr/sbin/fcgiwrap"]);
    let _program =
        Program::start(preloaded(fcgiwrap).arg("-f").arg("-s").arg(format!("unix:{}", socket.display())));
    wait_for("fcgiwrap", || UnixStream::connect(&socket).ok());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/script.cgi");
    let mut server = Server::connect(&socket);
    for bytes in [0, 10, 8192, 500_000] {
        let request = Request::get(script.display().to_string()).query(bytes.to_string());
        let request = request.post("text/plain", b"sent ".repeat(5000));
        let (outcome, response) = server.answer(&request, MODERN);
        let answered = outcome.complete();
        assert_eq!((answered.status, response.status), (202, 202));
        assert_eq!(response.body.len(), 25_000 + bytes);
        assert!(
            response.body.starts_with(b"sent sent ")
                && response.body[25_000..].iter().all(|byte| *byte == b'x')
        );
        assert!(String::from_utf8_lossy(&outcome.stderr).contains("told"));
        assert!(server.plain(&request).stdout.ends_with(&response.body));
    }
}

/// A responder with many unusual habits: it waits before each read, reads and writes by pieces, by vectors and
/// messages, through copies of its descriptor, from a child and from two threads, while signals interrupt it; and it
/// writes output that is not FastCGI.
#[test]
fn unusual_habits_do_no_harm() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let script = folder.path().join("responder.py");
    fs::write(&script, include_str!("responder.py")).expect("a script");
    let _program = Program::start(preloaded(python()).arg(&script).arg(&socket));
    wait_for("the responder", || UnixStream::connect(&socket).ok());
    let habits = [
        "select", "poll", "peek", "bytes", "vectors", "messages", "copy", "fork", "threads", "padding",
        "others",
    ];
    std::thread::scope(|scope| {
        for habit in habits {
            let mut server = Server::connect(&socket);
            let request = Request::get(habit.to_owned()).post("text/plain", pattern::pattern(70_000));
            scope.spawn(move || {
                for round in 0..3 {
                    let (outcome, response) = server.answer(&request, MODERN);
                    outcome.complete();
                    assert_eq!(response.field("X-Habit"), Some(habit), "round {round}");
                    assert_pattern(&response.body, 70_000);
                    assert!(
                        server.plain(&request).stdout.ends_with(&response.body),
                        "{habit}, round {round}"
                    );
                }
            });
        }
    });
    // Refused: the server must learn why.
    let refused = Server::connect(&socket).answer_none(&Request::get("refuse"), MODERN);
    assert_eq!(refused.end, Some((0, baton_fcgi::response::ProtocolStatus::Overloaded)));
    assert_eq!(refused.answered, None);
    // Not FastCGI: it reaches the server as it is, and the client nothing.
    let (mut client, server_end) = super::support::Client::connect();
    let mut server = Server::connect(&socket);
    server.send_offer(&Request::get("garbage"), MODERN, &server_end);
    drop(server_end);
    let mut received = Vec::new();
    std::io::Read::read_to_end(&mut server.stream, &mut received).expect("the end");
    assert_eq!(received, b"This is not FastCGI at all.");
    assert_eq!(client.read_to_end(), b"");
}

/// The same bytes, the same status, no message.
#[test]
fn programs_without_fastcgi_notice_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("file"), pattern::pattern(1_000_000)).expect("a file");
    same_with_library(folder.path(), "ls", &["-l", "/usr/bin"]);
    same_with_library(folder.path(), "cat", &["file"]);
    same_with_library(folder.path(), "cat", &["missing"]);
    same_with_library(folder.path(), "sh", &["-c", "echo a | cat - file | tail -c 100; exit 3"]);
    let script = folder.path().join("sockets.py");
    fs::write(&script, include_str!("sockets.py")).expect("a script");
    same_with_library(folder.path(), python().to_str().expect("a name"), &["sockets.py"]);
}

fn same_with_library(folder: &Path, program: &str, arguments: &[&str]) {
    let run = |mut command: Command| {
        let output = command.current_dir(folder).args(arguments).output().expect("it runs");
        (output.status, output.stdout, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let without = run(Command::new(program));
    let with = run(preloaded(program));
    assert_eq!((with.0, &with.2), (without.0, &without.2), "{program} {arguments:?}");
    assert!(with.1 == without.1, "{program} {arguments:?} writes something else");
}

fn python() -> std::path::PathBuf {
    installed("python3", &["/usr/bin/python3"])
}
