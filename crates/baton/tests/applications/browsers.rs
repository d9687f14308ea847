//! Browsers take codings, and routes may compress. By `auto` an application answers on their sockets all the same:
//! it leaves to the server what the server compresses. The log says how each answer has travelled.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use baton_responder::{Request, Responder};

use crate::common::client::{Client, Response};
use crate::common::decode::decode;
use crate::common::folder::{Folder, pattern};
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};

/// What a browser says that it takes.
const BROWSER: &str = "Accept-Encoding: gzip, deflate, br, zstd\r\n";

/// A page that is long enough to be compressed.
const PAGE_BYTES: usize = 20_000;

/// A site whose applications answer by `auto` and by `unix`.
fn server() -> Server {
    let folder = Folder::new();
    for transport in ["auto", "passfd", "unix"] {
        let socket = folder.base().join(format!("{transport}.sock"));
        let mut responder = Responder::bind(&socket).expect("a socket");
        // The server's workers may be another user's.
        fs::set_permissions(&socket, Permissions::from_mode(0o777)).expect("permissions");
        std::thread::spawn(move || {
            loop {
                let mut request = responder.next_request().expect("a request");
                answer(&mut request).expect("a client that reads");
            }
        });
    }
    let route = |transport| {
        format!(
            "[[site.route]]\npath = '/{transport}'\nfastcgi = {{ to = 'unix:{{base}}/{transport}.sock', \
             transport = '{transport}', passfd_users = ['{{user}}'], named_files = ['{{root}}'] }}\n"
        )
    };
    folder.write("named.txt", "a file");
    let site = format!(
        "processes = 1\nserver_header = false\n[log]\naccess = '{{base}}/access.log'\nformat = 'json'\nflush_ms = 10\n\
         [admin]\nlisten = '127.0.0.1:0'\n[tls]\nkernel = 'off'\n[[site]]\n{{listen}}\nroot = '{{root}}'\ncompress = true\n{}{}{}",
        route("auto"),
        route("passfd"),
        route("unix"),
    );
    Server::run(folder, &site)
}

fn answer(request: &mut Request<'_>) -> std::io::Result<()> {
    let path = String::from_utf8_lossy(request.variable("PATH_INFO").unwrap_or_default()).into_owned();
    let head = match path.as_str() {
        "/page.html" | "/short.html" => "Content-Type: text/html\r\n",
        "/flushed.html" => "Content-Type: text/html\r\nVary: Cookie\r\n",
        "/coded.html" => "Content-Type: text/html\r\nContent-Encoding: x-own\r\n",
        "/as-it-is.html" => "Content-Type: text/html\r\nCache-Control: no-transform\r\n",
        "/missing.html" => "Status: 404 Not Found\r\nContent-Type: text/html\r\n",
        "/not-modified" => "Status: 304 Not Modified\r\n",
        "/named" => {
            let root = request.variable("DOCUMENT_ROOT").unwrap_or_default();
            let root = String::from_utf8_lossy(root).into_owned();
            return write!(request, "X-Sendfile: {root}/named.txt\r\n\r\n");
        }
        _ => "Content-Type: image/png\r\n",
    };
    write!(request, "{head}\r\n")?;
    match path.as_str() {
        "/not-modified" => Ok(()),
        "/short.html" => request.write_all(b"short"),
        "/flushed.html" => {
            request.write_all(b"at once")?;
            request.flush()?;
            request.write_all(pattern(PAGE_BYTES, 1))
        }
        _ => request.write_all(pattern(PAGE_BYTES, 1)),
    }
}

/// A response to a browser.
fn get(server: &Server, path: &str, fields: &str) -> Response {
    server.agent().ask("GET", path, fields)
}

/// What the browser makes of a body. Encoders write what they have at a flush, so coded bytes differ with the pieces that came.
fn plain_text(response: &Response) -> Vec<u8> {
    match response.field("content-encoding") {
        None | Some("x-own") => response.body.clone(),
        Some(coding) => decode(coding, &response.body),
    }
}

/// How the answer to the last request for a path has travelled, as the log says it.
fn transport(server: &Server, path: &str) -> String {
    let mut word = None;
    wait_until("the log has the request", || {
        let log = fs::read_to_string(server.folder().base().join("access.log")).unwrap_or_default();
        let line = log.lines().rfind(|line| line.contains(&format!("GET {path} HTTP/")));
        let entry = line.map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        word = entry.map(|entry| entry["transport"].as_str().unwrap_or("-").to_owned());
        word.is_some()
    });
    word.unwrap_or_default()
}

/// The server knows what the application by `auto` supports.
fn settle(server: &Server) {
    let mut count = 0;
    wait_until("sockets are passed", || {
        count += 1;
        let path = format!("/auto/settled-{count}.png");
        assert_eq!(get(server, &path, BROWSER).status, 200);
        transport(server, &path) == "passfd"
    });
}

/// Goal: a browser's image comes from the application itself, and its page, which the server compresses, does not; both are
/// the same as by `unix`. Before, a client that takes a coding got nothing by `passfd` while `compress` was on.
#[test]
fn what_is_not_compressed_travels_by_passfd() {
    let server = server();
    settle(&server);
    for (path, fields, expected) in [
        ("image.png", BROWSER, "passfd"),
        ("page.html", BROWSER, "declined-compression"),
        ("flushed.html", BROWSER, "declined-compression"),
        ("missing.html", BROWSER, "declined-compression"),
        ("short.html", BROWSER, "passfd"),
        ("coded.html", BROWSER, "passfd"),
        ("as-it-is.html", BROWSER, "passfd"),
        ("not-modified", BROWSER, "passfd"),
        ("page.html?plain", "", "passfd"),
        ("page.html?part", "Accept-Encoding: gzip\r\nRange: bytes=0-1\r\n", "passfd"),
        ("named", BROWSER, "file"),
    ] {
        for by in ["auto", "passfd"] {
            let path = format!("/{by}/{path}");
            let plain_path = path.replace(by, "unix");
            let (here, there) = (get(&server, &path, fields), get(&server, &plain_path, fields));
            assert_eq!(transport(&server, &path), expected, "{path}");
            let without = if expected == "file" { "file" } else { "unix" };
            assert_eq!(transport(&server, &plain_path), without, "{path}");
            for name in ["content-type", "content-encoding", "vary"] {
                assert_eq!(here.field(name), there.field(name), "{path}: {name}");
            }
            assert_eq!(
                (here.status, plain_text(&here) == plain_text(&there)),
                (there.status, true),
                "{path}"
            );
        }
    }
}

/// Goal: browsers that speak HTTP/2, or TLS that no kernel seals, get their answers through shared memory, by `auto`. `check` says
/// why by no better way.
#[test]
fn where_no_socket_can_be_passed_memory_is_shared() {
    let server = server();
    settle(&server);
    for protocol in Protocol::ALL {
        let path = format!("/auto/{protocol}.png");
        let image = server.over(protocol).agent().ask("GET", &path, BROWSER);
        assert_eq!((image.status, image.body == pattern(PAGE_BYTES, 1)), (200, true), "{protocol}");
        let expected = if protocol == Protocol::Http { "passfd" } else { "shm" };
        assert_eq!(transport(&server, &path), expected, "{protocol}");
    }
    let file = server.folder().base().join("baton.toml");
    let output = Command::new(env!("CARGO_BIN_EXE_baton")).arg("check").arg("--config").arg(file).output();
    let said = String::from_utf8(output.expect("baton").stdout).expect("text");
    assert!(
        said.contains("/auto: `shm` with a library in the application, else `unix`; no `passfd`: "),
        "{said}"
    );
    assert!(said.contains("browsers speak HTTP/2 here"), "{said}");
}

/// Goal: operators see how answers travel. Method: two images and two pages; the rows of the applications, the sums of
/// the status and the metrics agree.
#[test]
fn shares_of_transports_are_told() {
    let server = server();
    for path in ["/passfd/1.png", "/passfd/2.png", "/passfd/page.html", "/passfd/page.html"] {
        assert_eq!(get(&server, path, BROWSER).status, 200);
    }
    let shares = "declined-compression 50 %, passfd 50 %";
    wait_until("the status has the shares", || server.ctl(&["status", "applications"]).contains(shares));
    let answers = server.status()["totals"]["answers"].clone();
    let told = ["passfd", "declined-compression", "unix"].map(|word| answers[word].as_u64());
    assert_eq!(told, [Some(2), Some(2), Some(0)], "{answers}");
    assert!(server.ctl(&["status"]).contains(shares));
    let metrics = Client::connect(*server.addresses().last().expect("the admin listener")).get("/metrics");
    for (transport, count) in [("passfd", 2), ("declined-compression", 2), ("unix", 0)] {
        let sample = format!("baton_application_answers_total{{transport=\"{transport}\"}} {count}\n");
        assert!(metrics.text().contains(&sample), "{sample}");
    }
}
