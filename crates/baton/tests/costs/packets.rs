//! Packets per exchange.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use rustix::net::sockopt::set_tcp_quickack;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};

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
        let ports: Vec<u16> = (0..ROUNDS).map(|_| fetch(address, path, acknowledges_at_once)).collect();
        let packets = captured(&capture, address);
        counted.insert(name.to_owned(), usual(ports.iter().map(|&port| of(&packets, port)).collect()));
    }
    compare("Packets", "auto", &counted);
}

/// Sends a request on a new connection and reads to its end; returns its port.
fn fetch(address: SocketAddr, path: &str, acknowledges_at_once: bool) -> u16 {
    let socket =
        socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a socket");
    if !acknowledges_at_once {
        set_tcp_quickack(&socket, false).expect("an option");
    }
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

/// How often each exchange is made.
const ROUNDS: usize = 15;
