//! Other proxies behind the server and in front of it: nginx, HAProxy and Varnish, with Node as the origin; and origins in
//! Python and Go.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::agent::{Agent, Body};
use crate::common::folder::{Folder, pattern};
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::common::{leave_out, matrix, tools};
use crate::real::{NODE, Program, front};

/// A proxy between its clients and `to`.
struct Intermediary {
    address: SocketAddr,
    child: Child,
    /// Has it read its configuration anew, which ends its idle connections.
    reload: fn(&Self),
    folder: Folder,
}

impl Drop for Intermediary {
    fn drop(&mut self) {
        // HAProxy's master and varnishd end their workers when they are asked to.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// How it is started, and what the origin behind it is: Varnish takes no trailers.
type Start = (fn(SocketAddr) -> Intermediary, fn() -> Program);

/// nginx keeps a connection for five requests, so that the server often meets one that has just ended.
fn nginx(to: SocketAddr) -> Intermediary {
    let configuration = format!(
        "daemon off; pid {{base}}/pid; error_log {{base}}/error.log;\nevents {{ }}\nhttp {{ access_log off; \
         client_body_temp_path {{base}}/c; proxy_temp_path {{base}}/p; fastcgi_temp_path {{base}}/f; \
         scgi_temp_path {{base}}/s; uwsgi_temp_path {{base}}/u; client_max_body_size 0;\n\
         upstream next {{ server {to}; keepalive 4; }}\n\
         server {{ listen {{address}}; keepalive_requests 5; location / {{ proxy_pass http://next; \
         proxy_http_version 1.1; proxy_set_header Connection ''; proxy_request_buffering off; \
         proxy_buffering off; }} }} }}\n"
    );
    // Its old workers close connections between two requests: who uses one then cannot know.
    let reload = |own: &Intermediary| {
        let before = workers(own);
        signal(own, Signal::HUP);
        wait_until("the end of its old workers", || {
            !workers(own).iter().any(|worker| before.contains(worker))
        });
    };
    start(&configuration, reload, |file| {
        let mut command = Command::new("nginx");
        command.arg("-c").arg(file).args(["-e", "stderr"]);
        command
    })
}

/// HAProxy speaks what its clients speak: HTTP/1, or HTTP/2 with prior knowledge.
fn haproxy(to: SocketAddr) -> Intermediary {
    haproxy_to(&to.to_string())
}

/// The same, and HTTP/2 with the server behind it.
fn haproxy_by_http2(to: SocketAddr) -> Intermediary {
    haproxy_to(&format!("{to} proto h2"))
}

fn haproxy_to(to: &str) -> Intermediary {
    let configuration = format!(
        "defaults\n mode http\n timeout connect 20s\n timeout client 20s\n timeout server 20s\n http-reuse always\n\
         frontend near\n bind {{address}}\n default_backend far\nbackend far\n server next {to}\n"
    );
    let reload = |own: &Intermediary| signal(own, Signal::USR2);
    start(&configuration, reload, |file| {
        let mut command = Command::new("/usr/sbin/haproxy");
        command.args(["-W", "-q", "-f"]).arg(file);
        command
    })
}

/// Varnish, which stores nothing here.
fn varnish(to: SocketAddr) -> Intermediary {
    let vcl = format!(
        "vcl 4.1;\nbackend next {{ .host = \"{}\"; .port = \"{}\"; }}\nsub vcl_recv {{ return (pass); }}\n",
        to.ip(),
        to.port()
    );
    let reload = |own: &Intermediary| {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("next{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let base = own.folder.base();
        let file = base.join("configuration");
        for arguments in [&["vcl.load", &name, file.to_str().expect("UTF-8")][..], &["vcl.use", &name]] {
            let mut admin = Command::new("varnishadm");
            admin.arg("-n").arg(base.join("varnish")).args(arguments).stdout(Stdio::null());
            assert!(admin.status().expect("varnishadm").success());
        }
    };
    start(&vcl, reload, |file| {
        let base = file.parent().expect("a folder");
        let mut command = Command::new("/usr/sbin/varnishd");
        command.args(["-j", "none", "-F", "-p", "feature=+http2", "-s", "malloc,32m", "-a", "{address}"]);
        command.arg("-n").arg(base.join("varnish")).arg("-f").arg(file);
        command
    })
}

/// Starts a proxy on an address that nothing else of the tests uses; the kernel's choice of the port is kept.
fn start(
    configuration: &str,
    reload: fn(&Intermediary),
    command: impl Fn(&std::path::Path) -> Command,
) -> Intermediary {
    let folder = Folder::new();
    let free = TcpListener::bind("127.0.8.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let base = folder.base().display().to_string();
    let fill_in = |text: &str| text.replace("{base}", &base).replace("{address}", &free.to_string());
    let file = folder.base().join("configuration");
    fs::write(&file, fill_in(configuration)).expect("a file");
    let template = command(&file);
    let mut command = Command::new(template.get_program());
    command.args(template.get_args().map(|argument| fill_in(argument.to_str().expect("UTF-8"))));
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("scripts/setup-tests");
    let own = Intermediary { address: free, child, reload, folder };
    wait_until("it listens", || TcpStream::connect(own.address).is_ok());
    own
}

fn signal(own: &Intermediary, signal: Signal) {
    kill_process(Pid::from_child(&own.child), signal).expect("it runs");
}

/// The processes that it has started.
fn workers(own: &Intermediary) -> Vec<String> {
    let pid = own.child.id();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("it runs");
    children.split_whitespace().map(str::to_owned).collect()
}

/// Bodies both ways, of any framing, on connections that are kept for a while.
fn converse(connect: &dyn Fn() -> Agent) {
    for round in 0..matrix::size(1, 3) {
        let mut agent = connect();
        for (number, len) in [0, 1, 1_000, 100_000, 1_000_000].into_iter().enumerate() {
            let content = pattern(len, (round * 10 + number) as u64);
            for body in [Body::Length(len), Body::Open] {
                agent.begin("PUT", "localhost", "/echo", "", body);
                agent.send_body(content);
                agent.finish_body();
                let response = agent.response();
                assert_eq!(response.status, 200, "{len} {body:?}: {response:?}");
                assert!(response.body == content, "{len} {body:?}: other bytes");
                if response.field("connection") == Some("close") {
                    agent = connect();
                }
            }
        }
    }
}

/// Requests by several clients while the proxy between them and Node reads its configuration anew.
fn reload_under_load(own: &Intermediary, connect: &(dyn Fn() -> Agent + Sync)) {
    let requests = matrix::size(16, 40);
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let done = &done;
            scope.spawn(move || {
                for number in 0..requests {
                    let content = pattern(3_000, (client * requests + number) as u64);
                    let response = connect().send("PUT", "/echo", content);
                    assert_eq!(response.status, 200, "{response:?}");
                    assert!(response.body == content, "other bytes");
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for part in 1..4 {
            wait_until("a part is done", || done.load(Ordering::Relaxed) >= part * CLIENTS * requests / 4);
            (own.reload)(own);
        }
    });
}

/// Client, Baton, the other proxy, Node.
fn is_behind((start, origin): Start) {
    let origin = origin();
    let own = start(origin.address());
    let server = front(&format!("http://{}", own.address), "");
    for protocol in Protocol::ALL {
        let server = server.over(protocol);
        converse(&|| server.agent());
    }
    reload_under_load(&own, &|| server.agent());
}

/// Client, the other proxy, Baton, Node.
fn is_in_front((start, origin): Start, protocols: &[Protocol]) {
    let origin = origin();
    let server = front(&format!("http://{}", origin.address()), "");
    let own = start(server.address());
    for protocol in protocols {
        converse(&|| Agent::connect(own.address, *protocol));
    }
    reload_under_load(&own, &|| Agent::connect(own.address, Protocol::Http));
    // The server's own reload, with the other proxy's connections open.
    server.ctl(&["reload"]);
    converse(&|| Agent::connect(own.address, Protocol::Http));
}

#[test]
fn nginx_is_behind() {
    is_behind((nginx, node));
}

#[test]
fn haproxy_is_behind() {
    is_behind((haproxy, node));
}

#[test]
fn varnish_is_behind() {
    is_behind((varnish, python));
}

#[test]
fn nginx_is_in_front() {
    is_in_front((nginx, node), &[Protocol::Http]);
}

#[test]
fn haproxy_is_in_front() {
    is_in_front((haproxy, node), &[Protocol::Http, Protocol::H2c]);
}

#[test]
fn haproxy_is_in_front_and_speaks_http2() {
    is_in_front((haproxy_by_http2, node), &[Protocol::Http, Protocol::H2c]);
}

#[test]
fn varnish_is_in_front() {
    is_in_front((varnish, python), &[Protocol::Http, Protocol::H2c]);
}

/// Goal: fields behind a body pass two servers. Method: the origin counts the bytes that it was sent.
#[test]
fn trailers_pass_haproxy_and_the_server() {
    let origin = node();
    let server = front(&format!("http://{}", origin.address()), "");
    let (in_front, by_http2) = (haproxy(server.address()), haproxy_by_http2(server.address()));
    let behind = haproxy(origin.address());
    let far = front(&format!("http://{}", behind.address), "");
    for address in [in_front.address, by_http2.address, far.address()] {
        let mut agent = Agent::connect(address, Protocol::H2c);
        agent.begin("PUT", "localhost", "/echo", "te: trailers\r\n", Body::Length(100_000));
        agent.send_body(pattern(100_000, 7));
        agent.finish_body();
        assert_eq!(agent.head().status, 200);
        assert!(agent.body().as_deref() == Ok(pattern(100_000, 7)));
        let Agent::Http2(mut client) = agent else { panic!("another protocol") };
        assert_eq!(client.trailers(), [("x-count".to_owned(), "100000".to_owned())], "{address}");
    }
}

fn node() -> Program {
    Program::start(Command::new("node").args(["-e", NODE]))
}

fn python() -> Program {
    Program::start(Command::new("/usr/bin/python3").args(["-u", "-c", PYTHON]))
}

const PYTHON: &str = "
import http.server
class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def content(self):
        if self.headers.get('Transfer-Encoding') != 'chunked':
            return self.rfile.read(int(self.headers.get('Content-Length', 0)))
        content = b''
        while size := int(self.rfile.readline(), 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content
    def do_PUT(self):
        content = self.content()
        self.send_response(200)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(content)
    do_GET = do_HEAD = do_PUT
    def log_message(self, *words):
        pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Echo)
server.daemon_threads = True
print(server.server_port)
server.serve_forever()
";

#[test]
fn python_echoes() {
    echoes(&python());
}

#[test]
fn go_echoes() {
    match tools::find("echo-origin") {
        Some(program) => echoes(&Program::start(&mut Command::new(program))),
        None => leave_out("an origin in Go", "it is not installed: scripts/setup-tests builds it, with Go"),
    }
}

/// Interim responses are for origins that are next to the server: not every proxy takes them.
fn echoes(origin: &Program) {
    let server: Server = front(&format!("http://{}", origin.address()), "");
    for protocol in Protocol::ALL {
        let server = server.over(protocol);
        converse(&|| server.agent());
        let mut agent = server.agent();
        agent.begin("GET", "localhost", "/hints", "", Body::None);
        let mut statuses = std::iter::repeat_with(|| agent.head().status);
        assert_eq!(statuses.find(|status| *status != 103), Some(200));
    }
}

const CLIENTS: usize = 4;
