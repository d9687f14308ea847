//! The distribution's Python frameworks behind the server by this repository's Python package: Flask (WSGI) and
//! Starlette (ASGI), with the applications of the package's own tests.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::built;
use crate::common::client::{Client, Response};
use crate::common::folder::{Folder, pattern};
use crate::common::server::{Server, wait_until};
use crate::holdings::{AnswerTransport, way};
use crate::nginx::Nginx;
use crate::program::{Program, wait_for_listener};
use crate::seen::Seen;
use crate::site;
use crate::visitor::{HOST, Visitor};

/// An application.
struct Framework {
    name: &'static str,
    /// Arguments of the package's command.
    arguments: &'static [&'static str],
    /// The path at which it names its file, if allowed.
    named: &'static str,
}

const FLASK: Framework = Framework { name: "flask", arguments: &["flask_app:app"], named: "/download" };
const STARLETTE: Framework =
    Framework { name: "starlette", arguments: &["starlette_app:app", "--asgi"], named: "/named" };

/// How large the file is that they send.
const FILE_BYTES: usize = 1_234_567;
const UPLOAD_BYTES: usize = 3_000_000;

/// A path to the application: its name, the transport, whether files may be named, and how answers travel.
const FRONTS: [(&str, &str, bool, AnswerTransport); 4] = [
    ("unix", "unix", false, AnswerTransport::Plain),
    ("shm", "shm", false, AnswerTransport::Shm),
    ("passfd", "passfd", false, AnswerTransport::PassFd),
    ("named", "auto", true, AnswerTransport::PassFd),
];

/// Fields that the server of a named file adds.
const OF_THE_FILE: [&str; 3] = ["etag", "last-modified", "accept-ranges"];

#[test]
fn flask_answers_the_same_by_every_way() {
    compare(&FLASK);
}

#[test]
fn starlette_answers_the_same_by_every_way() {
    compare(&STARLETTE);
}

/// Goal: visitors of an application cannot distinguish paths and servers. Method: the same actions by each path, and
/// by nginx; then all answers are compared.
fn compare(framework: &Framework) {
    let folder = Folder::new();
    let _program = start(framework, &folder);
    let base = folder.base().display();
    let nginx = Nginx::start(
        &folder,
        &format!("location / {{ {{parameters}} fastcgi_pass unix:{base}/{}.sock; }}", framework.name),
    );
    let expected = visit(nginx.address(), framework);
    looks_incomplete(nginx.address(), "nginx");

    for (front, transport, names_files, expected_way) in FRONTS {
        let server = Server::run(Folder::new(), &site(framework, &folder, transport, names_files));
        let address = server.address();
        // First, let the server learn the application's transports.
        wait_until(front, || way(Visitor::new(address).agent(), HOST, "/holds") == expected_way);
        for ((station, expected), (_, mut seen)) in expected.iter().zip(visit(address, framework)) {
            if names_files {
                for name in OF_THE_FILE {
                    seen.forget_fields_beyond(expected, name);
                }
            }
            seen.expect(expected, &format!("{front}: {station}"));
        }
        // The application gives its file no tag.
        let file = Visitor::new(address).get(framework.named);
        assert_eq!(file.field("etag").is_some(), names_files, "{front}: {:?}", file.fields);
        looks_incomplete(address, front);
    }
}

/// Flask's application at a socket in the folder.
pub(crate) fn start_flask(folder: &Folder, socket: &str) -> Program {
    start_at(&FLASK, folder, &folder.base().join(socket))
}

fn start(framework: &Framework, folder: &Folder) -> Program {
    start_at(framework, folder, &folder.base().join(framework.name).with_extension("sock"))
}

fn start_at(framework: &Framework, folder: &Folder, socket: &Path) -> Program {
    let package = built::repository().join("adapters/python");
    let file = folder.base().join("file.bin");
    fs::write(&file, pattern(FILE_BYTES, 3)).expect("a file");
    // The distribution's, which has its packages.
    let mut command = Command::new("/usr/bin/python3");
    command
        .args(["-B", "-m", "baton_fastcgi", "--processes", "0", "--mode", "666", "--chdir"])
        .arg(package.join("tests"))
        .arg("--bind")
        .arg(format!("unix:{}", socket.display()))
        .args(framework.arguments)
        .env("PYTHONPATH", package.join("src"))
        .env("TEST_FILE", file);
    if framework.name == FLASK.name {
        command.args(["--threads", "2"]);
    }
    let log = folder.base().join("python.log");
    let program = Program::start(&mut command, folder, &log);
    wait_for_listener(socket);
    program
}

/// All answers to a visitor, each with its action.
fn visit(address: SocketAddr, framework: &Framework) -> Vec<(String, Seen)> {
    let mut visitor = Visitor::new(address);
    let mut seen = Vec::new();
    let mut note = |visitor: &Visitor, what: &str, status: u16, answer: &Response| {
        assert_eq!(answer.status, status, "{what}: {answer:?}");
        seen.push((what.to_owned(), Seen::of(answer, visitor.secrets())));
    };

    let page = visitor.get("/");
    assert_eq!(page.text(), "hello stranger\n");
    note(&visitor, "a stranger", 200, &page);
    let answer = visitor.post("/login", &[("user", "ada"), ("password", "wrong")]);
    note(&visitor, "a wrong password", 403, &answer);
    let answer = visitor.post("/login", &[("user", "ada"), ("password", "right")]);
    note(&visitor, "the right one", 302, &answer);
    let page = visitor.get("/");
    assert_eq!(page.text(), "hello ada\n");
    note(&visitor, "logged in", 200, &page);

    let content = pattern(UPLOAD_BYTES, 4);
    let answer = visitor.upload("/upload", &[("title", "a title")], ("one", "\u{fc}nique.bin", content));
    assert!(answer.text().contains(&UPLOAD_BYTES.to_string()), "{answer:?}");
    note(&visitor, "an upload", 200, &answer);
    let answer = visitor.post("/raw", &[("text", &"a long text ".repeat(20_000))]);
    note(&visitor, "a body that the application reads piece by piece", 200, &answer);

    for path in ["/download", framework.named] {
        let answer = visitor.get(path);
        assert!(answer.body == pattern(FILE_BYTES, 3), "{} other bytes", answer.body.len());
        note(&visitor, path, 200, &answer);
        let answer = visitor.ask("HEAD", path, "");
        note(&visitor, &format!("the head of {path}"), 200, &answer);
    }
    let answer = visitor.get("/stream");
    assert!(answer.text().ends_with("line 999\n") && answer.field("content-length").is_none(), "{answer:?}");
    note(&visitor, "a stream", 200, &answer);
    for size in [0, 1, 70_000, 5_000_000] {
        let answer = visitor.get(&format!("/size/{size}"));
        assert_eq!(answer.body.len(), size);
        note(&visitor, &format!("{size} bytes"), 200, &answer);
    }
    for (path, status) in [("/error", 500), ("/nowhere", 404)] {
        let answer = visitor.get(path);
        note(&visitor, path, status, &answer);
    }

    let answer = visitor.post("/logout", &[]);
    note(&visitor, "logging out", 204, &answer);
    let page = visitor.get("/");
    assert_eq!(page.text(), "hello stranger\n");
    note(&visitor, "a stranger again", 200, &page);
    seen
}

/// What breaks off amid an answer does not look complete, and the next answer does not suffer.
fn looks_incomplete(address: SocketAddr, front: &str) {
    let mut client = Client::connect(address);
    client.send(format!("GET /error-in-stream HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"));
    let got = String::from_utf8_lossy(&client.until_the_end()).into_owned();
    assert!(!got.ends_with("\r\n0\r\n\r\n") && !got.contains("secret"), "{front}: {got}");
    assert_eq!(Visitor::new(address).get("/").text(), "hello stranger\n", "{front}");
}

fn site(framework: &Framework, folder: &Folder, transport: &str, names_files: bool) -> String {
    let base = folder.base().display();
    let named_files = if names_files { format!("named_files = [\"{base}\"]") } else { String::new() };
    let name = framework.name;
    let fastcgi = format!(
        "to = \"unix:{base}/{name}.sock\"\ntransport = \"{transport}\"\nconnections_max = 2\n{named_files}"
    );
    site::of_one_application(Path::new("{root}"), "", &fastcgi)
}
