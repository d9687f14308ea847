//! Clients that take all they can get, beside a modest one at another address, which is served meanwhile.

use std::io::{ErrorKind, Write as _};
use std::net::TcpStream;

use crate::applications::{Parameters, answer_fastcgi};
use crate::common::client::Client;
use crate::common::folder::Folder;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::common::stream::connect_from;
use crate::origin::{Origin, Peer};

/// What a greedy client sends on each of its connections, and then waits.
const ABUSES: [(&str, &str); 9] = [
    ("silence", ""),
    ("half a head", "GET /small.txt HTTP/1.1\r\nHo"),
    ("an idle connection", "GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("no body", "POST /origin/take HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"),
    ("a body that ends early", "POST /app/take HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nabc"),
    ("an unread file", "GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("a window of no bytes", HTTP2_WITHOUT_WINDOW),
    ("an origin that never answers", "GET /origin/never HTTP/1.1\r\nHost: a\r\n\r\n"),
    (
        "a tunnel",
        "GET /origin/tunnel HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    ),
];

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
    for (what, request) in ABUSES {
        let server = start(architecture, &origin);
        let secure = server.over(Protocol::Https);
        let victim = |path: &str| secure.get(path).text().to_owned();
        assert_eq!(victim("/cached/object"), "the origin");
        let held: Vec<TcpStream> = (0..2 * CONNECTIONS_MAX).map(|_| greedy(&server, request)).collect();
        wait_until(&format!("{what} is refused"), || held.iter().any(is_refused));
        for (path, answer) in [
            ("/small.txt", "small"),
            ("/app/x", "the application"),
            ("/origin/x", "the origin"),
            ("/cached/object", "the origin"),
        ] {
            assert_eq!(victim(path), answer, "{path} beside {what}");
        }
        wait_until("that is counted", || metric(&server, "baton_connections_over_share_total") > 0);
    }
}

crate::common::matrix::usual_architectures! { crate::architectures::under_each! [by name: greedy_clients_keep_no_other_waiting] }

/// A client at another address than the victim's.
fn greedy(server: &Server, request: &str) -> TcpStream {
    let mut client = connect_from([127, 0, 0, 2].into(), server.address());
    // The server may have closed it already.
    let _ = client.write_all(request.as_bytes());
    client
}

/// Whether the server has closed a connection, or answered that it is busy.
fn is_refused(client: &TcpStream) -> bool {
    let mut start = [0; 12];
    client.set_nonblocking(true).expect("an option");
    let peeked = client.peek(&mut start);
    client.set_nonblocking(false).expect("an option");
    match peeked {
        Ok(0) => true,
        Ok(count) => start[..count].starts_with(b"HTTP/1.1 503"),
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

fn metric(server: &Server, name: &str) -> u64 {
    let admin = *server.addresses().last().expect("an address for monitoring");
    let metrics = Client::connect(admin).get("/metrics").text().to_owned();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.expect("it is counted").parse().expect("a number")
}

fn serve(peer: &mut Peer) {
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
            _ => peer.answer("Cache-Control: max-age=600\r\n", "the origin"),
        }
    }
}

fn start(architecture: &str, origin: &Origin) -> Server {
    let folder = Folder::new();
    folder.write("small.txt", "small");
    folder.write("large.bin", vec![7; 8 << 20]);
    answer_fastcgi(&folder.base().join("app.sock"), |_: &Parameters| {
        "Content-Type: text/plain\r\n\r\nthe application".to_owned()
    });
    let origin = origin.address();
    let configuration = format!(
        "architecture = '{architecture}'\nprocesses = 1\nthreads = 2\n[admin]\nlisten = ['127.0.0.1:0']\n[limits]\n\
         connections_max = {CONNECTIONS_MAX}\n[timeouts]\nhead_ms = 600_000\nbody_ms = 600_000\nidle_ms = 600_000\n\
         send_ms = 600_000\n[send]\ndefer_accept_s = 0\n[[site]]\n{{listen}}\nroot = '{{root}}'\n[[site.route]]\npath = \
         '/origin'\nproxy = {{ to = 'http://{origin}/', connections_max = 8, queue_max = 8, queue_ms = 600_000 }}\n\
         [[site.route]]\npath = '/app'\nfastcgi = {{ to = 'unix:{{base}}/app.sock' }}\n[[site.route]]\npath = '/cached'\n\
         proxy = 'http://{origin}'\ncache = true\n"
    );
    Server::run(folder, &configuration)
}

/// Of one worker: few, so that they are soon taken.
const CONNECTIONS_MAX: usize = 40;
