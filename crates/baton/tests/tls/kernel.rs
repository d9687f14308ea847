//! Records that the kernel seals: clients get the same bytes, and the same ends, as of those that the server seals.
//!
//! Few kernels are built for the machines on which tests run; `scripts/test-kernel-tls` runs these in a virtual one.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;

use baton_responder::{Request, Responder};
use rustix::net::sockopt;

use super::authority::Authority;
use super::client::Client;
use super::exchange::Exchange;
use crate::common::client;
use crate::common::folder::{Folder, pattern};
use crate::common::kernel_tls;
use crate::common::server::{Server, wait_until};

const NAME: &str = "kernel.test";
const LONG_BYTES: usize = 4 << 20;

/// Fits into the sockets of both ends, which take a part of it each.
const MIDDLING_BYTES: usize = 1 << 20;

/// A server of which a site has an address in clear and one with TLS, and an application that answers by `passfd`.
struct Site {
    server: Server,
    clear: SocketAddr,
    tls: SocketAddr,
    client: Client,
}

/// Runs a test, whose connections the kernel is to seal, so many of them.
fn with_kernel(sealed: u64, settings: &str, test: impl FnOnce(&Site)) {
    let Some(_alone) = kernel_tls::alone() else { return };
    let site = Site::start(settings);
    let before = kernel_tls::connections();
    test(&site);
    assert_eq!(kernel_tls::connections() - before, sealed, "{}", site.server.said());
}

impl Site {
    fn start(settings: &str) -> Self {
        let authority = Authority::new("authority");
        let folder = Folder::new();
        authority.issue(&[NAME]).install(&folder, "own");
        folder.write("long.bin", pattern(LONG_BYTES, 3)).write("middling.bin", pattern(MIDDLING_BYTES, 5));
        folder.write("short.txt", "short");
        let socket = folder.base().join("app.sock");
        let responder = Responder::bind(&socket).expect("a socket");
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o777)).expect("permissions");
        std::thread::spawn(move || answer_all(responder));
        let server = Server::run(folder, &CONFIGURATION.replace("{settings}", settings));
        let (clear, tls) = (server.addresses()[0], server.addresses()[1]);
        Self { server, clear, tls, client: Client::new(&authority) }
    }

    fn connect(&self) -> Exchange {
        self.client.connect(self.tls, NAME).expect("a handshake").into()
    }

    /// Gets the same from the address in clear and on this connection.
    fn same(&self, exchange: &mut Exchange, path: &str, fields: &str) {
        let request = request(path, fields);
        let mut clear = client::Client::connect(self.clear);
        clear.send(&request);
        let expected = clear.answer_to("GET");
        exchange.send(&request);
        let got = exchange.answer();
        assert!(got.head.starts_with(&expected.line), "{path} {fields}: {}", got.head);
        assert!(without_boundary(&got.body) == without_boundary(&expected.body), "{path} {fields}");
    }
}

/// The body without what stands between its parts, if it has several: that is drawn anew for each answer.
fn without_boundary(body: &[u8]) -> Vec<Vec<u8>> {
    let line = body.split(|byte| *byte == b'\n').nth(1).and_then(|line| line.strip_suffix(b"\r"));
    match line.filter(|line| line.starts_with(b"--")) {
        Some(boundary) => {
            let mut parts = Vec::new();
            let mut rest = body;
            while let Some(at) = memchr::memmem::find(rest, boundary) {
                parts.push(rest[..at].to_vec());
                rest = &rest[at + boundary.len()..];
            }
            parts.push(rest.to_vec());
            parts
        }
        None => vec![body.to_vec()],
    }
}

fn request(path: &str, fields: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {NAME}\r\n{fields}\r\n")
}

const CONFIGURATION: &str = r#"
processes = 1
{settings}
[[site]]
name = "own"
root = "{root}"
listen = ["127.0.0.1:0", "127.0.0.2:0 tls"]
tls = { certificate = "own.pem", key = "own.key" }
[[site.route]]
path = "/app"
[site.route.fastcgi]
to = "unix:{base}/app.sock"
passfd_users = ["{user}"]
transport = "passfd"
named_files = ["{root}"]
"#;

/// An application with one process.
fn answer_all(mut responder: Responder) {
    while let Ok(mut request) = responder.next_request() {
        // A client that is gone is no failure of the application.
        let _ = answer(&mut request);
    }
}

fn answer(request: &mut Request<'_>) -> std::io::Result<()> {
    let text = |name| String::from_utf8_lossy(request.variable(name).unwrap_or_default()).into_owned();
    let size = text("QUERY_STRING").parse().unwrap_or(0);
    match text("PATH_INFO").as_str() {
        "/zero-copy" => {
            let file = format!("{}/long.bin", text("DOCUMENT_ROOT"));
            write!(request, "X-ZeroCopy: 3/{}\r\n\r\n<i>{file}</i>", file.len())
        }
        "/chunks" => {
            write!(request, "Content-Type: text/plain\r\n\r\n")?;
            for piece in pattern(size, 1).chunks(10_000) {
                request.write_all(piece)?;
                request.flush()?;
            }
            Ok(())
        }
        _ => {
            write!(request, "Content-Type: text/plain\r\nContent-Length: {size}\r\n\r\n")?;
            request.write_all(pattern(size, 1))
        }
    }
}

/// Goal: byte for byte what a connection in clear carries, however much. Method: so many MiB of a file as
/// `KERNEL_TLS_MIB` says, on one connection, then ranges of it.
#[test]
fn long_files_and_their_ranges() {
    with_kernel(1, "", |site| {
        let mut connection = site.connect();
        let mib: usize = std::env::var("KERNEL_TLS_MIB").map_or(64, |text| text.parse().expect("a number"));
        let file = pattern(LONG_BYTES, 3);
        for _ in 0..(mib << 20) / LONG_BYTES {
            connection.send(&request("/long.bin", ""));
            assert!(connection.answer().body == file);
        }
        site.same(&mut connection, "/long.bin", "Range: bytes=1000000-2999999\r\n");
        site.same(&mut connection, "/long.bin", "Range: bytes=-1\r\n");
        site.same(&mut connection, "/long.bin", "Range: bytes=5-9,70000-1500000,4000000-\r\n");
        site.same(&mut connection, "/short.txt", "");
        site.same(&mut connection, "/missing", "");
    });
}

/// The server seals what is short, and all if it is told to.
#[test]
fn short_files_are_not_the_kernels() {
    with_kernel(0, "", |site| {
        let mut connection = site.connect();
        site.same(&mut connection, "/short.txt", "");
        site.same(&mut connection, "/long.bin", "Range: bytes=0-99999\r\n");
    });
    with_kernel(0, "[tls]\nkernel = \"off\"", |site| {
        site.same(&mut site.connect(), "/long.bin", "Range: bytes=0-399999\r\n");
        site.same(&mut site.connect(), "/app/bytes?100000", "");
        assert!(site.server.ctl(&["status", "--all"]).contains("kernel tls      no: `tls.kernel` is off"));
    });
}

/// An application answers on the client's own socket, as it does without TLS: it writes plaintext.
#[test]
fn answers_of_applications() {
    with_kernel(1, "", |site| {
        let mut connection = site.connect();
        for size in [0, 1, 100, 50_000, 700_000] {
            site.same(&mut connection, &format!("/app/bytes?{size}"), "");
            site.same(&mut connection, &format!("/app/chunks?{size}"), "");
        }
        // The server's own between them: the application may hold a copy of the socket.
        site.same(&mut connection, "/long.bin", "");
        site.same(&mut connection, "/app/zero-copy", "");
        site.same(&mut connection, "/app/bytes?9", "");
        // The worker reports once a second.
        let status = || site.server.ctl(&["--json", "status"]).replace([' ', '\n'], "");
        wait_until("the transport, in the status", || status().contains("\"transport\":\"passfd\""));
        assert!(status().contains("yes:longfiles"), "{}", status());
    });
}

/// The last record arrives, and the client is told that it is the last, however slowly it reads.
#[test]
fn the_end_is_told() {
    with_kernel(3, "", |site| {
        for path in ["/middling.bin", "/app/bytes?700000", "/app/chunks?700000"] {
            let mut connection = site.connect();
            sockopt::set_socket_recv_buffer_size(connection.tcp(), 100_000).expect("an option");
            connection.send(&request(path, "Connection: close\r\n"));
            let answer = connection.answer();
            assert!(answer.head.starts_with("HTTP/1.1 200 "), "{}", answer.head);
            assert_eq!(connection.rest().expect("an orderly end"), b"", "{path}");
        }
    });
}

/// Goal: closing an idle connection drops nothing that the kernel has taken and TCP had no room for. That is a part of the
/// last record, for some lengths of a response: the buffer ends within that record, and the record lies in two pieces of
/// memory. Method: clients ask for more and more, around what the sockets hold, and read nothing until the server has
/// closed an idle connection that came later. Without the rule, some of them miss the end.
#[test]
fn idle_clients_get_all() {
    let lengths = || (255_000..285_000).step_by(600);
    let settings = "[timeouts]\nidle_ms = 300\n[send]\nsocket_buffer_bytes = 53248\n[cache]\nmemory_hot_file_bytes_max = 0";
    with_kernel(lengths().count() as u64, settings, |site| {
        let ask = |length| {
            let mut connection = site.connect();
            sockopt::set_socket_recv_buffer_size(connection.tcp(), 100_000).expect("an option");
            connection.send(&request("/middling.bin", &format!("Range: bytes=0-{}\r\n", length - 1)));
            (length, connection)
        };
        let waiting: Vec<_> = lengths().map(ask).collect();
        let mut other = client::Client::connect(site.clear);
        assert_eq!(other.get("/short.txt").text(), "short");
        assert_eq!(other.rest(), b"");
        let file = pattern(MIDDLING_BYTES, 5);
        for (length, mut connection) in waiting {
            assert!(connection.answer().body == file[..length], "{length}");
            assert_eq!(connection.rest().expect("an orderly end"), b"", "{length}");
        }
    });
}

/// A client that wants another key gets what it has asked for, and the end: the kernel keeps the one that it has.
#[test]
fn a_new_key_ends_the_connection() {
    with_kernel(1, "", |site| {
        let mut connection = site.connect();
        connection.send(&request("/long.bin", ""));
        let head = connection.take(200_000);
        connection.refresh_keys();
        let rest = connection.rest().expect("an orderly end");
        let body = [head, rest].concat();
        assert!(body.ends_with(pattern(LONG_BYTES, 3)));
    });
}

/// What is no record is answered with an alert, which the kernel seals.
#[test]
fn alerts() {
    with_kernel(1, "", |site| {
        let mut connection = site.connect();
        site.same(&mut connection, "/long.bin", "");
        connection.tcp().write_all(&[23, 3, 3, 0, 40]).expect("a header");
        connection.tcp().write_all(&[7; 40]).expect("no content");
        let error = connection.rest().unwrap_err();
        assert!(error.to_string().contains("BadRecordMac"), "{error}");
    });
}
