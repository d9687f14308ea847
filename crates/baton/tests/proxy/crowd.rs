//! Very many WebSockets at a time.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::Command;

use rustix::process::Pid;

use crate::common::descriptors::raise_descriptors;
use crate::common::folder::Folder;
use crate::common::server::{PATIENCE, Server, wait_until};
use crate::common::watched::Watched;
use crate::common::{leave_out, matrix};
use crate::real::Program;

/// Goal: every tunnel carries its own bytes, costs two descriptors and a bounded amount of memory, survives a reload, and
/// leaves nothing. Method: each client sends a message that no other sends, before the reload and behind it, and reads the
/// echo only when all have sent.
#[test]
fn a_crowd_of_websockets() {
    let tunnels = matrix::size(1_000, 10_000);
    // Two workers share the tunnels, each of which costs them two.
    let needed = tunnels as u64 + 5_000;
    if raise_descriptors(needed) < needed {
        return leave_out("the WebSockets", "too few descriptors (`ulimit -Hn`)");
    }
    let origin = echo_server();
    let server = server(origin.address());
    let before = server.sockets();
    let memory_before = memory_kib(&server);

    let mut clients = open(&server, tunnels);
    let sockets = server.sockets();
    let opened = sockets.iter().sum::<usize>() - before.iter().sum::<usize>();
    assert_eq!(opened, 2 * tunnels, "one of the client, one of the origin");
    let memory = memory_kib(&server) - memory_before;
    println!("{memory} KiB for {tunnels} tunnels: {} bytes each", memory * 1024 / tunnels);
    assert!(memory * 1024 / tunnels < TUNNEL_BYTES_MAX, "{memory} KiB for {tunnels} tunnels");

    echo_all(&mut clients, "before the reload");
    server.server().ctl(&["reload"]);
    echo_all(&mut clients, "behind the reload");
    assert_eq!(server.sockets(), sockets, "the reload has cost no tunnel");

    for (number, client) in clients.into_iter().enumerate() {
        match number % 2 {
            0 => client.shutdown(Shutdown::Write).expect("half closed"),
            _ => drop(client),
        }
    }
    server.wait_until_nothing_is_left(&before);
    wait_until("a line for each", || server.lines().len() == tunnels);
    assert!(server.lines().iter().all(|line| line["status"] == 101), "switched, each");
    let held = memory_kib(&server).saturating_sub(memory_before);
    println!("{held} KiB are still held");
}

fn server(origin: SocketAddr) -> Watched {
    let folder = Folder::new();
    let log = folder.base().join("access.log");
    let configuration = format!(
        "processes = 2\narchitecture = 'auto'\n[admin]\nlisten = '127.0.0.1:0'\n[limits]\nconnections_max = 20_000\n\
         [log]\naccess = '{{base}}/access.log'\nformat = 'json'\nflush_ms = 20\n[[site]]\nlisten = '127.0.0.1:0'\n\
         [[site.route]]\npath = '/'\nproxy = {{ to = 'http://{origin}', connections_max = 20_000, tunnels_max = 20_000 }}\n"
    );
    Watched::of(Server::run(folder, &configuration), log)
}

/// Opens tunnels, and reads the heads of the answers.
fn open(server: &Watched, count: usize) -> Vec<TcpStream> {
    let address = server.server().address();
    let open = |number: usize| {
        let mut client = TcpStream::connect(address).expect("a connection");
        client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
        let head =
            format!("GET /{number} HTTP/1.1\r\nHost: crowd\r\n{fields}Sec-WebSocket-Key: {KEY}\r\n\r\n");
        client.write_all(head.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte).expect("a head");
            answer.extend_from_slice(&byte);
        }
        let answer = String::from_utf8(answer).expect("text");
        assert!(answer.starts_with("HTTP/1.1 101 ") && answer.contains(ACCEPT), "{answer}");
        client
    };
    (0..count).map(open).collect()
}

/// Sends a message through each tunnel, and then reads all the echoes.
fn echo_all(clients: &mut [TcpStream], when: &str) {
    let text = |number: usize| format!("{when}, from {number}");
    for (number, client) in clients.iter_mut().enumerate() {
        client.write_all(&frame(text(number).as_bytes(), Some(MASK))).expect("sent");
    }
    for (number, client) in clients.iter_mut().enumerate() {
        let expected = frame(text(number).as_bytes(), None);
        let mut echo = vec![0; expected.len()];
        client.read_exact(&mut echo).unwrap_or_else(|error| panic!("{number} {when}: {error}"));
        assert!(echo == expected, "{number} {when}: {:?}", String::from_utf8_lossy(&echo));
    }
}

/// A text frame (RFC 6455 section 5.2) of at most 125 bytes.
fn frame(text: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
    let len = u8::try_from(text.len()).expect("a short text");
    assert!(len < 126);
    let mut frame = vec![0x81, len | if mask.is_some() { 0x80 } else { 0 }];
    frame.extend(mask.iter().flatten());
    frame.extend(text.iter().enumerate().map(|(at, byte)| byte ^ mask.map_or(0, |mask| mask[at % 4])));
    frame
}

/// An origin that sends every message back: a process of its own, which has descriptors of its own.
fn echo_server() -> Program {
    Program::start(Command::new("/usr/bin/python3").args(["-u", "-c", ECHO, ACCEPT]))
}

const ECHO: &str = "
import asyncio, resource, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
HEAD = ('HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n'
        'Sec-WebSocket-Accept: ' + sys.argv[1] + '\\r\\n\\r\\n').encode()
async def echo(reader, writer):
    try:
        await reader.readuntil(b'\\r\\n\\r\\n')
        writer.write(HEAD)
        while True:
            kind, length = await reader.readexactly(2)
            mask = await reader.readexactly(4)
            text = await reader.readexactly(length & 127)
            text = bytes(byte ^ mask[at % 4] for at, byte in enumerate(text))
            writer.write(bytes([kind, len(text)]) + text)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(echo, '127.0.0.1', 0, backlog=4096)
    print(server.sockets[0].getsockname()[1])
    await asyncio.Future()
asyncio.run(main())
";

/// Resident memory of the workers, in KiB.
fn memory_kib(server: &Watched) -> usize {
    let of = |worker: Pid| {
        let file = format!("/proc/{}/status", worker.as_raw_nonzero());
        let status = fs::read_to_string(file).expect("its status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("resident memory");
        line.trim().trim_end_matches(" kB").parse::<usize>().expect("KiB")
    };
    server.server().workers().into_iter().map(of).sum()
}

/// What a tunnel may cost in the worker while nothing moves: two connections' states, and no buffers.
const TUNNEL_BYTES_MAX: usize = 16 << 10;

/// The key of RFC 6455's own example, and what is said to it.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
