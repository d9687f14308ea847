//! SYNs on connections that were handed over: forged ones end nothing, and a client that has really begun anew is served.

use std::io::{Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream};

use baton_lab::network::{ClusterHosts, Network};
use baton_sys::tcp_repair;
use socket2::{Domain, Protocol, Socket, Type};

use crate::clients::long_file;
use crate::common::client::Client;
use crate::common::server::wait_until;
use crate::handoff::Cluster;

const VIP: SocketAddrV4 = SocketAddrV4::new(ClusterHosts::VIP_V4, 80);

fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let bytes = parts.concat();
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (!((folded & 0xffff) + (folded >> 16)) as u16).to_be_bytes()
}

/// A SYN as if from this client.
fn syn(client: SocketAddrV4) -> Vec<u8> {
    let mut tcp = [client.port().to_be_bytes(), VIP.port().to_be_bytes()].concat();
    tcp.extend([0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0]);
    let ends = [client.ip().octets(), VIP.ip().octets()].concat();
    let sum = checksum(&[&ends, &[0, 6, 0, 20], &tcp]);
    tcp[16..18].copy_from_slice(&sum);
    // The kernel fills in the length and the sum of the IP header.
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0];
    packet.extend(ends);
    packet.extend(tcp);
    packet
}

fn local(client: &Client) -> SocketAddrV4 {
    match client.stream().local_addr().expect("an address") {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(_) => unreachable!("clients have IPv4"),
    }
}

/// Goal: a forged SYN does not end a connection at a node. Method: another host sends some with the address and port of a client, which
/// asks on.
#[test]
fn a_forged_syn_ends_no_connection() {
    if Network::is_left_out() {
        return;
    }
    let mut cluster = Cluster::new("stay", "handoff");
    let attacker = cluster.another_host();
    let mut client = cluster.hosts.client.run(|| Client::connect(VIP.into()));
    let node = long_file(&mut client, 1);
    let raw = attacker.run(|| Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(RAW))));
    let raw = raw.expect("a raw socket");
    for turn in 2..6 {
        let packet = syn(local(&client));
        assert_eq!(raw.send_to(&packet, &VIP.into()).expect("a packet"), packet.len());
        assert_eq!(long_file(&mut client, turn), node, "on the same connection");
    }
    wait_until("it is there still", || cluster.front.status()["mover"]["connections_at_nodes"] == 1);
}

/// Goal: a client that has lost its connection without a word gets another one from the same port. Method: its kernel forgets the
/// connection, so that it answers the node's question with a reset.
#[test]
fn a_client_that_begins_anew_is_served() {
    if Network::is_left_out() {
        return;
    }
    let cluster = Cluster::new("stay", "handoff");
    let mut client = cluster.hosts.client.run(|| Client::connect(VIP.into()));
    long_file(&mut client, 1);
    let port = local(&client);
    tcp_repair::freeze(client.stream()).expect("a connection");
    tcp_repair::end(client.stream()).expect("a silent end");
    drop(client);
    let mut again: TcpStream = cluster.hosts.client.run(|| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.bind(&port.into()).expect("the same port");
        socket.connect(&VIP.into()).expect("another connection");
        socket.into()
    });
    again.write_all(b"GET /here HTTP/1.1\r\nHost: front\r\nConnection: close\r\n\r\n").expect("a server");
    let mut answer = String::new();
    again.read_to_string(&mut answer).expect("an answer");
    assert!(answer.ends_with("here"), "{answer}");
    wait_until("the old one is over", || {
        cluster.nodes.iter().all(|node| node.status()["mover"]["connections_of_front_ends"] == 0)
    });
}

/// Of a socket whose user writes the IP header, too.
const RAW: i32 = 255;
