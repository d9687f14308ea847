//! Packets per exchange.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;

use crate::program::behind_a_server;
use rustix::net::sockopt::set_tcp_quickack;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use socket2::SockRef;

use crate::capture::{Capture, Packet};
use crate::common::client::Client;
use crate::common::folder::Folder;
use crate::common::leave_out;
use crate::common::server::{PATIENCE, Server, wait_until};
use crate::document::compare;
use crate::usual::usual;

/// Goal: the packets of the document are those on the wire. Method: exchanges on the loopback interface, captured, by
/// clients that differ in how eagerly they acknowledge, which is not the server's affair.
#[test]
fn exchanges_take_the_packets_of_the_document() {
    if !rustix::process::geteuid().is_root() {
        return leave_out("the packets on the wire are not counted", "only root may capture them");
    }
    let folder = Folder::new();
    folder.write("small.txt", [b's'; 1000]).write("tiny.txt", [b't'; 100]);
    let server = Server::serve(folder, &["--workers", "1"]);
    let address = server.address();
    let mut kept = server.connect();
    for path in ["/small.txt", "/tiny.txt"] {
        kept.get(path);
    }

    let mut counted = BTreeMap::new();
    let capture = Capture::begin(address, server.folder().base());
    let port = kept.stream().local_addr().expect("its address").port();
    for _ in 0..ROUNDS {
        kept.get("/small.txt");
    }
    let packets = captured(&capture, address);
    counted.insert("1 KB, kept alive".to_owned(), usual(exchanges(&packets, port)));
    drop(kept);
    for (name, path, acknowledges_at_once) in [
        ("1 KB, closed", "/small.txt", true),
        ("1 KB, closed; a client that does not acknowledge at once", "/small.txt", false),
        ("100 bytes, closed; a client that does not acknowledge at once", "/tiny.txt", false),
    ] {
        let ports: Vec<u16> = (0..ROUNDS)
            .map(|_| fetch(address, path, |socket| Ok(set_tcp_quickack(socket, acknowledges_at_once)?)))
            .collect();
        let packets = captured(&capture, address);
        counted.insert(name.to_owned(), usual(ports.iter().map(|&port| of(&packets, port)).collect()));
    }
    compare("Packets", "auto", &counted);
}

/// Goal: no packet has nothing but a FIN, whichever call sends the last bytes, and whichever process. Method: clients that
/// take segments of an Ethernet, whose MTU is 1,500 bytes, and the server's packets after the handshake.
#[test]
fn no_fin_travels_alone() {
    if !rustix::process::geteuid().is_root() {
        return leave_out("the packets on the wire are not counted", "only root may capture them");
    }
    let mut counted = BTreeMap::new();
    for (name, transport, path, way) in [
        ("8 KB from memory", "unix", "/file.bin", "memory"),
        ("8 KB by `sendfile`", "unix", "/file.bin", "sendfile"),
        ("1 KB of an application, unix", "unix", "/app?1000", "memory"),
        ("1 KB of an application, shm", "shm", "/app?1000", "memory"),
        ("1 KB of an application, passfd", "passfd", "/app?1000", "memory"),
        ("8 KB of an application, passfd", "passfd", "/app?8192", "memory"),
    ] {
        let (server, _application, path) = behind_a_server(transport, path, 0, way);
        std::fs::write(server.folder().root().join("file.bin"), [b'f'; 8192]).expect("a file");
        let mut first = server.connect();
        for _ in 0..3 {
            first.get(&path);
        }
        drop(first);
        let address = server.address();
        let capture = Capture::begin(address, server.folder().base());
        let fetch = |_| fetch(address, &path, |socket| SockRef::from(socket).set_tcp_mss(SEGMENT_BYTES));
        let ports: Vec<u16> = (0..ROUNDS).map(fetch).collect();
        let packets = captured(&capture, address);
        counted.insert(name.to_owned(), usual(ports.iter().map(|&port| sent(&packets, port)).collect()));
    }
    compare("The end of a connection", "an MTU of 1,500", &counted);
}

/// The server's packets of a connection after the first, which answers the SYN, until its FIN; the kernel hands several of them
/// to the loopback interface at a time.
fn sent(packets: &[Packet], port: u16) -> Vec<String> {
    let mut sent = Vec::new();
    let of_server = packets.iter().filter(|packet| packet.port == port && packet.what.starts_with('S'));
    for packet in of_server.skip(1) {
        let before = packet.bytes.div_ceil(DATA_BYTES).saturating_sub(1);
        sent.extend(std::iter::repeat_n("S data".to_owned(), before));
        sent.push(packet.what.clone());
        if packet.what.ends_with("FIN") {
            break;
        }
    }
    sent
}

/// Sends a request on a new connection, prepared by `prepare`, and reads to its end; returns its port.
fn fetch(address: SocketAddr, path: &str, prepare: impl Fn(&OwnedFd) -> std::io::Result<()>) -> u16 {
    let socket =
        socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a socket");
    prepare(&socket).expect("an option");
    connect(&socket, &address).expect("a connection");
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("a response");
    stream.local_addr().expect("its address").port()
}

/// All packets so far: complete when those of a new connection are captured.
fn captured(capture: &Capture, address: SocketAddr) -> Vec<Packet> {
    let marker = Client::connect(address);
    let port = marker.stream().local_addr().expect("its address").port();
    let mut packets = Vec::new();
    wait_until("the last packets", || {
        packets = capture.packets();
        packets.iter().any(|packet| packet.port == port)
    });
    packets
}

/// The packets of a connection.
fn of(packets: &[Packet], port: u16) -> Vec<String> {
    packets.iter().filter(|packet| packet.port == port).map(|packet| packet.what.clone()).collect()
}

/// The packets from one request of a connection to the next.
fn exchanges(packets: &[Packet], port: u16) -> Vec<Vec<String>> {
    let of_connection = of(packets, port);
    let starts: Vec<usize> = (0..of_connection.len()).filter(|&at| of_connection[at] == "C data").collect();
    starts.windows(2).map(|pair| of_connection[pair[0]..pair[1]].to_vec()).collect()
}

/// The longest segment of IPv4 at an MTU of 1,500 bytes, and its data behind the timestamps of TCP.
const SEGMENT_BYTES: u32 = 1460;
const DATA_BYTES: usize = 1448;

/// How often each exchange is made.
const ROUNDS: usize = 15;
