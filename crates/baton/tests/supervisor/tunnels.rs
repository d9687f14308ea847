//! WebSockets and other tunnels that another process goes on with.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::spawn;

use crate::common::client::Client;
use crate::common::folder::pattern;
use crate::common::matrix;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::moving::{counted, recycle};
use crate::supervised::{ANY_PORTS, configure, folder, read, start_in};

/// A server whose `/tunnel` leads to this origin.
fn started(architecture: &str, origin: SocketAddr) -> Server {
    let folder = folder();
    let settings = format!(
        "architecture = \"{architecture}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
         [log]\naccess = \"access.log\"\nformat = \"json\"\nflush_ms = 10\n\
         [[site.route]]\npath = \"/tunnel\"\nproxy = {{ to = \"http://{origin}\" }}"
    );
    configure(&folder, ANY_PORTS, "root", &settings);
    start_in(folder)
}

/// Waits until as many tunnels are in the log, all of them complete.
fn expect_logged(server: &Server, count: usize) {
    let lines = || {
        let log = read(server, "access.log");
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        whole.lines().filter(|line| line.contains("/tunnel")).map(str::to_owned).collect::<Vec<_>>()
    };
    wait_until("all are in the log", || lines().len() >= count);
    assert_eq!(lines().len(), count, "each once");
    for line in lines() {
        let logged: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(
            (logged["status"].as_u64(), logged["outcome"].as_str()),
            (Some(101), Some("complete")),
            "{line}"
        );
        assert!(logged["body_bytes"].as_u64() > Some(0), "{line}");
    }
}

/// Echoes, and says something by itself all the time.
const ORIGIN: &str = "
import asyncio, websockets
async def tick(socket):
    number = 0
    try:
        while True:
            await socket.send('tick %d' % number)
            number += 1
            await asyncio.sleep(0.005)
    except websockets.ConnectionClosed:
        pass
async def serve(socket):
    ticking = asyncio.ensure_future(tick(socket))
    try:
        async for message in socket:
            await socket.send(message)
    except websockets.ConnectionClosed:
        pass
    finally:
        ticking.cancel()
async def main():
    async with websockets.serve(serve, '127.0.0.1', 0) as server:
        print(server.sockets[0].getsockname()[1])
        await asyncio.Future()
asyncio.run(main())
";

/// Exchanges messages until its input ends, and prints a line for each. Nothing may be missing in either direction.
const CLIENT: &str = "
import asyncio, ssl, sys, websockets
async def main():
    context = None
    if sys.argv[1].startswith('wss'):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    async with websockets.connect(sys.argv[1], ssl=context) as socket:
        end = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        ticks = sent = 0
        while not end.done():
            message = 'message %d ' % sent + 'x' * (sent * 97 % 5000)
            await socket.send(message)
            while (got := await socket.recv()) != message:
                assert got == 'tick %d' % ticks, got
                ticks += 1
            sent += 1
            print(sent)
            await asyncio.sleep(0.002)
        assert ticks > 0
        await socket.close(4000, 'done')
        assert socket.close_code == 4000
asyncio.run(main())
";

fn python(script: &str, argument: &str) -> Command {
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-u", "-c", script, argument]).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// A program that ends with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // Fails if it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A client of WebSocket.
struct Talk {
    program: Program,
    messages: Arc<AtomicU64>,
}

impl Talk {
    fn begin(server: &Server, scheme: &str, protocol: Protocol) -> Self {
        let url = format!("{scheme}://{}/tunnel", server.over(protocol).address());
        let mut child = python(CLIENT, &url).spawn().expect("python3 (scripts/setup-tests)");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let messages = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&messages);
        spawn(move || {
            output.lines().map_while(Result::ok).for_each(|_| _ = counter.fetch_add(1, Ordering::Relaxed));
        });
        Self { program: Program(child), messages }
    }

    /// Waits for some messages more.
    fn goes_on(&self, architecture: &str) {
        let messages = || self.messages.load(Ordering::Relaxed);
        let before = messages();
        wait_until(&format!("{architecture}: messages after {before}"), || messages() >= before + 20);
    }

    fn end(mut self, architecture: &str) {
        drop(self.program.0.stdin.take());
        assert!(self.program.0.wait().expect("its end").success(), "{architecture}");
    }
}

/// Goal: a WebSocket does not notice that the server is replaced, or its workers are. Method: a real library at both ends
/// exchanges messages before, during and after, in both directions, and misses none.
#[test]
fn websockets_go_on_with_the_new_server() {
    let mut origin = python(ORIGIN, "").spawn().expect("python3 (scripts/setup-tests)");
    let mut port = String::new();
    BufReader::new(origin.stdout.take().expect("its output")).read_line(&mut port).expect("a port");
    let _origin = Program(origin);
    let origin = format!("127.0.0.1:{}", port.trim()).parse().expect("an address");
    // Raw tunnels move under others below.
    for architecture in
        matrix::size(&["auto", "symped"][..], &["auto", "symped", "pipeline", "threads", "mt"])
    {
        let mut server = started(architecture, origin);
        let talks = [("ws", Protocol::Http), ("wss", Protocol::Https)]
            .map(|(scheme, protocol)| Talk::begin(&server, scheme, protocol));
        let go_on = || talks.iter().for_each(|talk| talk.goes_on(architecture));
        go_on();
        recycle(&server);
        wait_until("the new workers have both", || {
            counted(&server, "baton_connections_taken_over_total") >= 2
        });
        go_on();
        server.ctl(&["upgrade"]);
        server.ended();
        wait_until("the new server has both", || counted(&server, "baton_connections_taken_over_total") == 2);
        go_on();
        talks.into_iter().for_each(|talk| talk.end(architecture));
        expect_logged(&server, 2);
    }
}

/// An origin that switches protocols and sends back what comes, and `bye` at its end.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    spawn(move || {
        listener.incoming().for_each(|client| _ = spawn(move || serve_echo(client.expect("a client"))));
    });
    address
}

fn serve_echo(mut client: TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).expect("a head");
        head.extend(byte);
    }
    client
        .write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        .expect("a client");
    let mut other = client.try_clone().expect("a descriptor");
    std::io::copy(&mut client, &mut other).expect("a client");
    other.write_all(b"bye").expect("a client");
}

/// Goal: a tunnel moves whether it is silent, or full of bytes that one side has not taken, and each half ends on its own
/// afterwards. Method: raw clients; one sends more than all buffers hold and reads only behind the upgrade.
#[test]
fn silent_and_full_tunnels_go_on() {
    let origin = echo();
    let long = pattern(8 << 20, 7);
    for architecture in ["auto", "pipeline", "threads"] {
        let mut server = started(architecture, origin);
        let mut clients: Vec<Client> = [Protocol::Http, Protocol::Https, Protocol::Http]
            .map(|protocol| Client::connect_over(server.over(protocol).address(), protocol))
            .into();
        for client in &mut clients {
            client.send("GET /tunnel HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly");
            assert_eq!(client.head().status, 101, "{architecture}");
            assert_eq!(client.take(5), b"early");
        }
        let mut full = clients.pop().expect("the last one");
        let mut writer = full.stream().try_clone().expect("a descriptor");
        let writing = spawn(move || writer.write_all(long).expect("a server"));
        let begun = full.take(1_000);
        server.ctl(&["upgrade"]);
        // It leaves when no side has much to take.
        let rest = full.take(long.len() - begun.len());
        assert!([&begun[..], &rest].concat() == long, "{architecture}: the tunnel differs");
        writing.join().expect("all is written");
        server.ended();
        wait_until("the new server has all", || counted(&server, "baton_connections_taken_over_total") == 3);
        clients.push(full);
        for mut client in clients {
            client.send("late");
            assert_eq!(client.take(4), b"late", "{architecture}");
            client.finish_sending();
            assert_eq!(client.rest(), b"bye", "{architecture}");
        }
        expect_logged(&server, 3);
    }
}
