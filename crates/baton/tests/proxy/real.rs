//! Real origins and clients: Python's `http.server` and `websockets`, Node, nginx, and Baton itself.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::common::agent::Body;
use crate::common::folder::{Folder, pattern};
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::site::logged;

/// A program that is ended with the test.
pub(crate) struct Program {
    child: Child,
    port: String,
}

impl Program {
    /// Starts a program that prints its port as its first line.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("scripts/setup-tests");
        let mut port = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut port).expect("a port");
        Self { child, port: port.trim().to_owned() }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        format!("127.0.0.1:{}", self.port).parse().expect("a port")
    }

    fn python(script: &str) -> Self {
        Self::start(Command::new("/usr/bin/python3").args(["-u", "-c", script]))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server in front of an origin.
pub(crate) fn front(to: &str, more: &str) -> Server {
    let configuration = format!(
        "[log]\naccess = '{{base}}/access.log'\nformat = 'json'\nflush_ms = 10\n[[site]]\n{{listen}}\n\
         [[site.route]]\npath = '/'\nproxy = {{ to = '{to}', {more} }}\n"
    );
    Server::run(Folder::new(), &configuration)
}

const FILES: &str = "
import http.server, os, sys
os.chdir(sys.argv[1])
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
print(server.server_port)
server.serve_forever()
";

#[test]
fn pythons_files() {
    let folder = Folder::new();
    let content = pattern(2_000_000, 1);
    folder.write("big.bin", content);
    let origin =
        Program::start(Command::new("/usr/bin/python3").args(["-u", "-c", FILES]).arg(folder.root()));
    let server = front(&format!("http://127.0.0.1:{}", origin.port), "");
    for protocol in Protocol::ALL {
        let server = server.over(protocol);
        let mut agent = server.agent();
        assert!(agent.get("/big.bin").body == content);
        assert_eq!(agent.get("/missing").status, 404);
        let head = agent.ask("HEAD", "/big.bin", "");
        assert_eq!(head.field("content-length"), Some("2000000"));
        let date = head.field("last-modified").expect("a date").to_owned();
        assert_eq!(agent.ask("GET", "/big.bin", &format!("If-Modified-Since: {date}\r\n")).status, 304);
    }
}

/// Sends back what it gets, as it comes, and says in a trailer how much that was.
pub(crate) const NODE: &str = "
const http = require('http');
const server = http.createServer((request, response) => {
  if (request.url == '/hints') response.writeEarlyHints({ link: '</a.css>; rel=preload' });
  response.setHeader('Trailer', 'X-Count');
  let count = 0;
  request.on('data', piece => { count += piece.length; response.write(piece); });
  request.on('end', () => { response.addTrailers({ 'X-Count': String(count) }); response.end(); });
});
server.keepAliveTimeout = 2000;
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
";

/// Node ends idle connections early; what it streams both ways comes back whole.
#[test]
fn nodes_streams() {
    let origin = Program::start(Command::new("node").args(["-e", NODE]));
    let server = front(&format!("http://127.0.0.1:{}", origin.port), "");
    let content = pattern(3_000_000, 7);
    for protocol in Protocol::ALL {
        for body in [Body::Open, Body::Length(content.len())] {
            let mut agent = server.over(protocol).agent();
            agent.begin("POST", "localhost", "/echo", "", body);
            // Each piece is back before the next one leaves.
            for (number, piece) in content.chunks(60_000).enumerate() {
                agent.send_body(piece);
                if number == 0 {
                    assert_eq!(agent.head().status, 200);
                }
                assert!(agent.at_least(piece.len()) == piece, "{protocol:?}");
            }
            agent.finish_body();
            assert_eq!(agent.body(), Ok(Vec::new()));
        }
        let path = format!("/kept?{protocol:?}");
        assert_eq!(server.over(protocol).get(&path).status, 200);
        assert_eq!(logged(&server, &path)["outcome"], "complete");
    }
}

const WEBSOCKET_SERVER: &str = "
import asyncio, websockets
async def echo(socket):
    async for message in socket:
        await socket.send(message)
async def main():
    async with websockets.serve(echo, '127.0.0.1', 0) as server:
        print(server.sockets[0].getsockname()[1])
        await asyncio.Future()
asyncio.run(main())
";

const WEBSOCKET_CLIENT: &str = "
import asyncio, ssl, sys, websockets
async def main():
    context = None
    if sys.argv[1].startswith('wss'):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    async with websockets.connect(sys.argv[1], ssl=context, max_size=None) as socket:
        for message in ['a text', b'bytes', 'x' * 1_000_000, '']:
            await socket.send(message)
            assert await socket.recv() == message
        await (await socket.ping())
        await socket.close(4000, 'done')
        assert socket.close_code == 4000
print('ready')
asyncio.run(main())
";

/// Goal: a real library speaks through the proxy, closing handshake included. Method: both ends are the library's.
#[test]
fn websockets() {
    let origin = Program::python(WEBSOCKET_SERVER);
    let server = front(&format!("http://127.0.0.1:{}", origin.port), "");
    for (scheme, protocol) in [("ws", Protocol::Http), ("wss", Protocol::Https)] {
        let url = format!("{scheme}://{}/chat?{scheme}", server.over(protocol).address());
        let client =
            Command::new("/usr/bin/python3").args(["-c", WEBSOCKET_CLIENT, &url]).output().expect("python3");
        assert!(client.status.success(), "{}", String::from_utf8_lossy(&client.stderr));
        let line = logged(&server, &format!("/chat?{scheme}"));
        assert_eq!(
            (line["status"].as_u64(), line["outcome"].as_str()),
            (Some(101), Some("complete")),
            "{line}"
        );
    }
}

/// nginx on a Unix socket, and behind the PROXY protocol.
#[test]
fn nginx_behind() {
    let folder = Folder::new();
    let content = pattern(1_000_000, 5);
    folder.write("big.bin", content);
    let (base, root) = (folder.base().display().to_string(), folder.root().display().to_string());
    let configuration = format!(
        "daemon off; master_process off; pid {base}/nginx.pid; error_log {base}/nginx.log;\n\
         events {{ }}\nhttp {{ access_log off; client_body_temp_path {base}/c; proxy_temp_path {base}/p; \
         fastcgi_temp_path {base}/f; scgi_temp_path {base}/s; uwsgi_temp_path {base}/u;\n\
         server {{ listen unix:{base}/plain.sock; root {root}; }}\n\
         server {{ listen unix:{base}/told.sock proxy_protocol; \
         location / {{ return 200 \"$proxy_protocol_addr\"; }} }} }}\n"
    );
    std::fs::write(folder.base().join("nginx.conf"), configuration).expect("a file");
    let mut nginx = Command::new("nginx");
    nginx.arg("-c").arg(folder.base().join("nginx.conf")).args(["-e", "stderr"]);
    let child =
        nginx.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("nginx (scripts/setup-tests)");
    let _nginx = Program { child, port: String::new() };
    let socket = |name: &str| folder.base().join(name);
    wait_until("nginx", || socket("told.sock").exists());
    allow_everyone(&socket("plain.sock"));
    allow_everyone(&socket("told.sock"));

    let server = front(&format!("unix:{}", socket("plain.sock").display()), "");
    for protocol in Protocol::ALL {
        let mut agent = server.over(protocol).agent();
        assert!(agent.get("/big.bin").body == content);
        let part = agent.ask("GET", "/big.bin", "Range: bytes=10-19\r\n");
        assert_eq!((part.status, &part.body[..]), (206, &content[10..20]));
    }
    let server = front(&format!("unix:{}", socket("told.sock").display()), "send_proxy_protocol = 'v2'");
    for protocol in Protocol::ALL {
        assert_eq!(server.over(protocol).get("/").text(), "127.0.0.1");
    }
}

/// The workers' user may connect.
fn allow_everyone(socket: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o777)).expect("its mode");
}

/// Goal: an origin over TLS is verified. Method: Baton, whose certificate an authority of the tests has issued.
#[test]
fn an_origin_over_tls() {
    let folder = Folder::new();
    let content = pattern(1_000_000, 9);
    folder.write("big.bin", content);
    let origin = Server::run(folder, "[[site]]\n{listen}\nroot = '{root}'\n");
    let base = origin.folder().base().display().to_string();
    let address = origin.over(Protocol::Https).address();
    let to = format!("https://{address}");
    let server = front(&to, &format!("tls = {{ ca = '{base}/localhost.pem', name = 'localhost' }}"));
    for protocol in Protocol::ALL {
        let mut agent = server.over(protocol).agent();
        for _ in 0..2 {
            assert!(agent.get("/big.bin").body == content, "{protocol:?}");
        }
    }
    for more in [
        format!("tls = {{ ca = '{base}/localhost.pem', name = 'other.example' }}"),
        "tls = { name = 'localhost' }".to_owned(),
    ] {
        let server = front(&to, &more);
        assert_eq!(server.get("/big.bin").status, 502);
        assert_eq!(logged(&server, "/big.bin")["origin"]["failure"], "tls-failed");
        wait_until("the reason", || server.said().contains("certificate"));
    }
    let server = front(&to, "tls = { verify = false }");
    assert!(server.get("/big.bin").body == content);
}
