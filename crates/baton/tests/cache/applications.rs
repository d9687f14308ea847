//! Responses of applications, which are kept like those of origins.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use baton_responder::Responder;

use crate::common::folder::{Folder, install_program};
use crate::common::server::Server;
use crate::site::status;

/// Goal: applications of each kind have their responses kept, and a POST to them ends what is kept, also where they could
/// answer on the client's own socket. Method: each response has another number, so what is kept shows.
#[test]
fn responses_of_applications_are_kept_until_something_changes() {
    let folder = Folder::new();
    let script = folder.path("count.cgi");
    install_program(&script, CGI);
    for transport in TRANSPORTS {
        answer_fastcgi(&folder.base().join(format!("{transport}.sock")));
    }
    answer_scgi(&folder.base().join("scgi.sock"));
    let fastcgi: String = TRANSPORTS.map(|word| FASTCGI.replace("{transport}", word)).concat();
    let server = Server::run(folder, &format!("{SITE}{fastcgi}"));
    let paths = TRANSPORTS.map(|word| format!("/{word}/x")).into_iter();
    for path in paths.chain(["/scgi/x".into(), "/cgi/count.cgi".into()]) {
        let mut agent = server.agent();
        let mut get = || {
            let response = agent.get(&path);
            (response.text().trim().to_owned(), status(&response))
        };
        let (first, stored) = get();
        assert_eq!(stored, "baton; fwd=uri-miss; stored", "{path}");
        assert_eq!(get(), (first.clone(), "baton; hit".into()), "{path}");
        let changed = server.agent().send("POST", &path, b"a body");
        assert_eq!((changed.status, status(&changed).as_str()), (204, "baton; fwd=method"), "{path}");
        let (second, stored) = get();
        assert_eq!(stored, "baton; fwd=uri-miss; stored", "{path}");
        assert_ne!(first, second, "{path}");
        assert_eq!(get().0, second, "{path}");
    }
}

/// How an application answers with the FastCGI protocol.
const TRANSPORTS: [&str; 4] = ["unix", "shm", "passfd", "auto"];

const SITE: &str = r#"
processes = 1
[[site]]
listen = "127.0.0.1:0"
root = "{root}"
[[site.route]]
path = "/scgi"
scgi = { to = "unix:{base}/scgi.sock" }
cache = true
[[site.route]]
path = "/cgi"
root = "{root}"
cgi = { scripts = [".cgi"] }
cache = true
"#;

const FASTCGI: &str = r#"
[[site.route]]
path = "/{transport}"
fastcgi = { to = "unix:{base}/{transport}.sock", transport = "{transport}", passfd_users = ["{user}"] }
cache = true
"#;

const CGI: &str = r#"#!/bin/sh
case $REQUEST_METHOD in
GET) echo 'Cache-Control: max-age=600'; echo 'Content-Type: text/plain'; echo; echo $$ ;;
*) echo 'Status: 204 No Content'; echo ;;
esac
"#;

/// The response to a request with this method.
fn response(method: &str) -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    match method {
        "GET" => {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            format!("Cache-Control: max-age=600\r\nContent-Type: text/plain\r\n\r\n{number}")
        }
        _ => "Status: 204 No Content\r\n\r\n".into(),
    }
}

fn answer_fastcgi(socket: &Path) {
    let mut responder = Responder::bind(socket).expect("a socket");
    fs::set_permissions(socket, Permissions::from_mode(0o777)).expect("permissions");
    std::thread::spawn(move || {
        loop {
            let mut request = responder.next_request().expect("a request");
            let method = request.variables().find(|pair| pair.0 == b"REQUEST_METHOD");
            let method = String::from_utf8_lossy(method.expect("a method").1).into_owned();
            // A server that has ended takes nothing.
            let _ = request.write_all(response(&method).as_bytes());
        }
    });
}

fn answer_scgi(socket: &Path) {
    let listener = UnixListener::bind(socket).expect("a socket");
    fs::set_permissions(socket, Permissions::from_mode(0o777)).expect("permissions");
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let connection = connection.expect("a connection");
            let method = scgi_method(&connection);
            // A server that has ended takes nothing.
            let _ = (&connection).write_all(response(&method).as_bytes());
        }
    });
}

/// The method of the request on a connection, which is read to its end.
fn scgi_method(connection: &UnixStream) -> String {
    let mut input = BufReader::new(connection);
    let mut length = Vec::new();
    input.read_until(b':', &mut length).expect("a netstring");
    let length: usize = String::from_utf8_lossy(&length[..length.len() - 1]).parse().expect("a length");
    let mut head = vec![0; length + 1];
    input.read_exact(&mut head).expect("a head");
    let words: Vec<_> = head.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let value = |name: &str| {
        let found = words.chunks(2).find(|pair| pair[0] == name);
        found.map(|pair| pair[1].clone().into_owned()).unwrap_or_default()
    };
    let mut body = vec![0; value("CONTENT_LENGTH").parse().expect("a length")];
    input.read_exact(&mut body).expect("a body");
    value("REQUEST_METHOD")
}
