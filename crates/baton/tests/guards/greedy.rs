//! Clients that take all they can get, beside a modest one at another address, which is served meanwhile.

use std::io::{self, ErrorKind, Write as _};
use std::net::TcpStream;
use std::sync::LazyLock;

use crate::applications::{Parameters, answer_fastcgi};
use crate::common::client::Client;
use crate::common::folder::Folder;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::common::stream::connect_from;
use crate::origin::{Origin, Peer};

/// What a greedy client sends on each of its connections, over which protocol it should speak there, and then waits.
const ABUSES: [(&str, Protocol, &str); 14] = [
    ("silence", Protocol::Http, ""),
    ("half a head", Protocol::Http, "GET /small.txt HTTP/1.1\r\nHo"),
    ("a silent handshake", Protocol::Https, ""),
    ("half a handshake", Protocol::Https, "\x16\x03\x01\x02\x00\x01\x00\x01\x7c\x03\x03"),
    ("an idle connection", Protocol::Http, "GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("no body", Protocol::Http, "POST /origin/take HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"),
    (
        "a body that ends early",
        Protocol::Http,
        "POST /app/take HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nabc",
    ),
    ("an unread file", Protocol::Http, "GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("an unread answer", Protocol::Http, "GET /app/large HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("an unread response of an origin", Protocol::Http, "GET /origin/large HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("an unread object", Protocol::Http, "GET /cached/large HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a window of no bytes", Protocol::Http, HTTP2_WITHOUT_WINDOW),
    ("an origin that never answers", Protocol::Http, "GET /origin/never HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a tunnel", Protocol::Http, TUNNEL),
];

/// A request for a tunnel.
const TUNNEL: &str = "GET /origin/tunnel HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// HTTP/2 in clear: no bytes of a response are taken (a setting), and the large file is asked for.
const HTTP2_WITHOUT_WINDOW: &str = concat!(
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0",
    "\0\0;\x01\x05\0\0\0\x01",
    "\0\x07:method\x03GET\0\x07:scheme\x04http\0\x0a:authority\x01a\0\x05:path\x0a/large.bin",
);

/// Goal: whatever a client at one address fills, one at another address is served at once: a file, over a new connection and a
/// new handshake, an application, an origin and an object in the cache. Method: the greedy client holds all that it gets, and
/// no timeout of the server ends that.
fn greedy_clients_keep_no_other_waiting(architecture: &str) {
    let origin = Origin::start(serve);
    for (what, protocol, request) in ABUSES {
        let server = start(architecture, &origin, CONNECTIONS_MAX);
        serve_modest_client(&server, "nothing");
        let server = server.over(protocol);
        let held: Vec<TcpStream> = (0..2 * CONNECTIONS_MAX).map(|_| greedy(&server, request)).collect();
        wait_until(&format!("{what} is refused"), || held.iter().any(is_refused));
        serve_modest_client(&server, what);
        wait_until("that is counted", || metric(&server, "baton_connections_over_share_total") > 0);
    }
}

crate::common::matrix::usual_architectures! { crate::architectures::under_each! [by name: greedy_clients_keep_no_other_waiting] }

/// Goal: a client with a thousand WebSockets, and as many as it gets beyond, leaves room for those of others.
#[test]
fn a_thousand_tunnels_leave_room_for_others() {
    let server = start("auto", &Origin::start(serve), 4 * TUNNELS / 3);
    let mut held = Vec::new();
    while held.len() < TUNNELS {
        let tunnel = greedy(&server, TUNNEL);
        // One after the other: the queue in front of the origin is short.
        wait_until("it is open", || has_switched(&tunnel));
        held.push(tunnel);
    }
    let refused: Vec<TcpStream> = (0..20).map(|_| greedy(&server, TUNNEL)).collect();
    wait_until("others are refused", || refused.iter().all(is_refused));
    let mut other = server.connect();
    other.send(TUNNEL);
    assert_eq!(other.head().status, 101);
    serve_modest_client(&server, "a thousand tunnels");
}

/// A client gets a file, over a new connection and a new handshake, and what an application, an origin and the shared cache have.
pub(super) fn serve_modest_client(server: &Server, beside: &str) {
    let secure = server.over(Protocol::Https);
    for (path, answer) in [
        ("/small.txt", "small"),
        ("/app/x", "the application"),
        ("/origin/x", "the origin"),
        ("/cached/object", "the origin"),
    ] {
        assert_eq!(secure.get(path).text(), answer, "{path} beside {beside}");
    }
}

/// A client at another address than the victim's.
pub(super) fn greedy(server: &Server, request: &str) -> TcpStream {
    let mut client = connect_from([127, 0, 0, 2].into(), server.address());
    // The server may have closed it already.
    let _ = client.write_all(request.as_bytes());
    client
}

/// Whether the server has closed a connection, or answered that it is busy.
fn is_refused(client: &TcpStream) -> bool {
    match start_of_answer(client) {
        Ok(start) => start.is_empty() || start.starts_with(b"HTTP/1.1 503"),
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

/// Whether a tunnel is open.
fn has_switched(client: &TcpStream) -> bool {
    start_of_answer(client).is_ok_and(|start| start.starts_with(b"HTTP/1.1 101"))
}

/// What has come, without waiting.
fn start_of_answer(client: &TcpStream) -> io::Result<Vec<u8>> {
    let mut start = [0; 12];
    client.set_nonblocking(true).expect("an option");
    let peeked = client.peek(&mut start);
    client.set_nonblocking(false).expect("an option");
    peeked.map(|count| start[..count].to_vec())
}

fn metric(server: &Server, name: &str) -> u64 {
    let admin = *server.addresses().last().expect("an address for monitoring");
    let metrics = Client::connect(admin).get("/metrics").text().to_owned();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.expect("it is counted").parse().expect("a number")
}

pub(super) fn serve(peer: &mut Peer) {
    while let Some(seen) = peer.request() {
        match seen.path() {
            "/never" => return peer.wait_for_end(),
            "/tunnel" => {
                peer.send(
                    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                     Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
                );
                return peer.wait_for_end();
            }
            path if path.ends_with("/large") => {
                peer.answer("Cache-Control: max-age=600\r\n", LARGE.as_bytes());
            }
            _ => peer.answer("Cache-Control: max-age=600\r\n", "the origin"),
        }
    }
}

/// So many that the connections of `greedy_work` are within a share of them.
const CLIENTS_AT_A_TIME: usize = 32;

/// Text that no socket holds whole.
static LARGE: LazyLock<String> = LazyLock::new(|| "some words of a text.\n".repeat(LARGE_BYTES / 22));

/// A server with few helpers, and no timeout that would end an abuse.
pub(super) fn start(architecture: &str, origin: &Origin, connections_max: usize) -> Server {
    let folder = Folder::new();
    folder.write("small.txt", "small");
    folder.write("large.bin", vec![7; LARGE_BYTES]);
    answer_fastcgi(&folder.base().join("app.sock"), |parameters: &Parameters| {
        let is_large = parameters["SCRIPT_NAME"].ends_with("large");
        let body = if is_large { LARGE.as_str() } else { "the application" };
        format!("Content-Type: text/plain\r\n\r\n{body}")
    });
    let origin = origin.address();
    // Where each has one client at a time, few would be a table of few connections.
    let (processes, threads) = match architecture {
        "mp" => (CLIENTS_AT_A_TIME, 1),
        "mt" => (1, CLIENTS_AT_A_TIME),
        _ => (1, 2),
    };
    let configuration = format!(
        "architecture = '{architecture}'\nprocesses = {processes}\nthreads = {threads}\n[admin]\nlisten = ['127.0.0.1:0']\n[limits]\n\
         connections_max = {connections_max}\n[timeouts]\nhead_ms = 600_000\nbody_ms = 600_000\nidle_ms = 600_000\n\
         send_ms = 600_000\n[send]\ndefer_accept_s = 0\n[cache]\nmemory_bytes_max = 1_000_000\n[[site]]\n{{listen}}\n\
         root = '{{root}}'\nbrowse = true\ncompress = true\n[[site.route]]\npath = '/origin'\nproxy = {{ to = \
         'http://{origin}/', connections_max = 8, queue_max = 8, queue_ms = 600_000 }}\n[[site.route]]\npath = '/app'\n\
         fastcgi = {{ to = 'unix:{{base}}/app.sock' }}\n[[site.route]]\npath = '/cached'\nproxy = 'http://{origin}'\n\
         cache = true\n"
    );
    Server::run(folder, &configuration)
}

/// Of one worker: few, so that they are soon taken.
const CONNECTIONS_MAX: usize = 40;

/// Three quarters of the connections of a worker that has four thirds of them.
const TUNNELS: usize = 999;

const LARGE_BYTES: usize = 8 << 20;
