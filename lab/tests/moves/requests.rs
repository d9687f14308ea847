//! Small requests and answers on connections that move: what the client sees, whatever arrives when.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use baton_lab::network::{ClusterHosts, Network};
use baton_sys::flow_table::Flow;

use crate::agent::{Cluster, Connection, Place, VIPS, flow_of, give_away};

const PLACES: [Place; 4] = [Place::Node(0), Place::Node(1), Place::Front, Place::Node(1)];

/// A request and its answer, which says what was asked.
fn exchange(connection: &mut Connection, number: u32) {
    connection.client.write_all(&number.to_be_bytes()).unwrap();
    answer(connection, number);
}

/// Reads the request where the connection lives, and answers.
fn answer(connection: &mut Connection, number: u32) {
    let mut bytes = [0; 4];
    connection.server.read_exact(&mut bytes).unwrap();
    assert_eq!(u32::from_be_bytes(bytes), number);
    connection.server.write_all(&(!number).to_be_bytes()).unwrap();
    connection.client.read_exact(&mut bytes).unwrap();
    assert_eq!(u32::from_be_bytes(bytes), !number);
}

/// Goal: a connection moves hundreds of times, forth and back, and the client notices nothing. Method: 300 moves for each
/// family of addresses; no host repeats a segment, resets anything or gets a wrong checksum.
#[test]
fn a_connection_moves_300_times() {
    if Network::is_left_out() {
        return;
    }
    let mut cluster = Cluster::new(2);
    for vip in VIPS {
        let listener = cluster.listen(vip);
        let mut connection = cluster.connect(&listener);
        for number in 0..300 {
            exchange(&mut connection, number);
            let place = PLACES[number as usize % PLACES.len()];
            connection = cluster.move_to(connection, place);
            assert_eq!(connection.place, place);
        }
        exchange(&mut connection, 300);
        // The end of the connection reaches the node, too.
        drop(connection.client);
        assert_eq!(connection.server.read(&mut [0; 1]).unwrap(), 0);
    }
    cluster.assert_nothing_went_wrong();
}

/// Goal: what the options of the client make of a connection goes along. Method: each option off in the client's kernel,
/// and all of them.
#[test]
fn options_go_along() {
    if Network::is_left_out() {
        return;
    }
    let mut cluster = Cluster::new(2);
    let listener = cluster.listen(VIPS[0]);
    let names = ["tcp_timestamps", "tcp_sack", "tcp_window_scaling"];
    for off in [&[][..], &names[..1], &names[1..2], &names[2..], &names[..]] {
        for name in names {
            let value = if off.contains(&name) { "0" } else { "1" };
            cluster.hosts.client.set(&format!("ipv4/{name}"), value).unwrap();
        }
        let mut connection = cluster.connect(&listener);
        for number in 0..8 {
            exchange(&mut connection, number);
            cluster.hold(flow_of(&connection.server));
            let state = give_away(connection.server);
            let agreed = [state.timestamp.is_some(), state.selective_acks, state.window_scales.receive > 0];
            assert_eq!(agreed, names.map(|name| !off.contains(&name)), "{off:?}");
            let place = PLACES[number as usize % PLACES.len()];
            connection = Connection { server: cluster.take(&state, place), place, ..connection };
        }
        crate::bulk::both_ways(&mut connection, 1 << 20);
    }
    cluster.assert_nothing_went_wrong();
}

/// Goal: what the client sends while its packets are held arrives at the next place. Method: it sends in the middle of a move:
/// before the dump and behind it.
#[test]
fn what_comes_while_held_is_repeated() {
    if Network::is_left_out() {
        return;
    }
    let mut cluster = Cluster::new(2);
    for vip in VIPS {
        let listener = cluster.listen(vip);
        let mut connection = cluster.connect(&listener);
        for number in 0..4_u32 {
            let place = PLACES[number as usize];
            let flow = flow_of(&connection.server);
            cluster.hold(flow);
            let packets = cluster.table.report(flow).unwrap().packets;
            let [first, second, third, fourth] = number.to_be_bytes();
            connection.client.write_all(&[first, second]).unwrap();
            let state = give_away(connection.server);
            assert!(state.unread.is_empty());
            connection.client.write_all(&[third, fourth]).unwrap();
            wait_until(|| cluster.table.report(flow).unwrap().packets > packets);
            connection = Connection { server: cluster.take(&state, place), place, ..connection };
            answer(&mut connection, number);
        }
    }
    assert!(cluster.hosts.client.counter("Tcp", "RetransSegs").unwrap() > 0);
    cluster.assert_nothing_went_wrong();
}

/// Goal: what was not read goes along, and what the client has not got is repeated by the next place. Method: the client's
/// link is down while the front-end answers.
#[test]
fn queues_go_along() {
    if Network::is_left_out() {
        return;
    }
    let mut cluster = Cluster::new(1);
    for vip in VIPS {
        let listener = cluster.listen(vip);
        let mut connection = cluster.connect(&listener);
        exchange(&mut connection, 1);
        connection.client.write_all(b"request").unwrap();
        wait_for_input(&connection.server, 7);
        cluster.hosts.network.plug("client", false).unwrap();
        connection.server.write_all(b"answer").unwrap();
        cluster.hold(flow_of(&connection.server));
        let state = give_away(connection.server);
        assert_eq!((&state.unread[..], &state.unacked[..]), (&b"request"[..], &b"answer"[..]));
        connection.server = cluster.take(&state, Place::Node(0));
        cluster.hosts.network.plug("client", true).unwrap();
        let mut bytes = [0; 7];
        connection.client.read_exact(&mut bytes[..6]).unwrap();
        assert_eq!(&bytes[..6], b"answer");
        connection.server.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"request");
        exchange(&mut connection, 2);
    }
    cluster.assert_nothing_went_wrong();
}

/// Goal: a packet that comes to the front-end's own stack behind the end of its socket resets nothing. Method: a segment with
/// the client's address, from within the front-end, where the program for arriving packets does not see it.
#[test]
fn a_late_packet_resets_nothing() {
    if Network::is_left_out() {
        return;
    }
    let mut cluster = Cluster::new(1);
    let listener = cluster.listen(VIPS[0]);
    let mut connection = cluster.connect(&listener);
    connection = cluster.move_to(connection, Place::Node(0));
    exchange(&mut connection, 1);
    let flow = flow_of(&connection.server);
    let segment = segment(flow);
    cluster.hosts.front.run(|| {
        use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with};
        let raw = socket_with(AddressFamily::INET, SocketType::RAW, SocketFlags::CLOEXEC, Some(ipproto::RAW))
            .unwrap();
        sendto(&raw, &segment, SendFlags::empty(), &flow.vip).unwrap();
    });
    wait_until(|| cluster.table.report(flow).unwrap().own_packets == 1);
    exchange(&mut connection, 2);
    assert_eq!(cluster.hosts.front.counter("Tcp", "OutRsts").unwrap(), 1);
    assert_eq!(cluster.hosts.client.counter("Tcp", "EstabResets").unwrap(), 0);
}

/// An IPv4 packet of the flow with an acknowledgement that means nothing.
fn segment(flow: Flow) -> Vec<u8> {
    let (IpAddr::V4(client), IpAddr::V4(vip)) = (flow.client.ip(), flow.vip.ip()) else { unreachable!() };
    let addresses = [client.octets(), vip.octets()].concat();
    let ports = [flow.client.port().to_be_bytes(), flow.vip.port().to_be_bytes()].concat();
    let mut tcp = [&ports[..], &[0, 0, 0, 1, 0, 0, 0, 1, 0x50, 16, 1, 0, 0, 0, 0, 0]].concat();
    // The checksum covers the addresses, the protocol and the length, too.
    let covered = [&addresses[..], &[0, 6, 0, 20], &tcp].concat();
    let sum: u32 = covered.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
    [&[0x45, 0, 0, 40, 0, 1, 0, 0, 64, 6, 0, 0], &addresses[..], &tcp].concat()
}

/// Goal: a client that begins anew with the same addresses gets the front-end, not the node that has the old connection.
/// Method: it resets a moved connection while the link to the node is down, so that the node keeps it; the agent hears that it is
/// over.
#[test]
fn a_port_that_is_used_again_leads_to_the_front_end() {
    if Network::is_left_out() {
        return;
    }
    let mut cluster = Cluster::new(2);
    for vip in VIPS {
        let listener = cluster.listen(vip);
        let mut connection = cluster.connect(&listener);
        exchange(&mut connection, 1);
        connection = cluster.move_to(connection, Place::Node(0));
        exchange(&mut connection, 2);
        let (flow, address) = (flow_of(&connection.server), connection.client.local_addr().unwrap());
        cluster.hosts.network.plug("node1", false).unwrap();
        reset(connection.client);
        wait_until(|| cluster.table.report(flow).unwrap().rst);
        assert!(!cluster.table.report(flow).unwrap().replaced);
        cluster.table.end(flow);

        let client = cluster.hosts.client.run(|| connect_from(address, (vip, 80).into()));
        let server = listener.accept().unwrap().0;
        assert_eq!(server.peer_addr().unwrap(), address);
        assert!(cluster.table.report(flow).unwrap().replaced);
        let mut again = Connection { client, server, place: Place::Front };
        exchange(&mut again, 3);
        // To the other node: the first still has the old connection.
        again = cluster.move_to(again, Place::Node(1));
        exchange(&mut again, 4);
        assert!(!cluster.table.report(flow).unwrap().replaced);
        cluster.hosts.network.plug("node1", true).unwrap();
    }
}

/// Goal: a node that dies resets its connections and no others, and without the table no packet goes to nodes. Method: a
/// node's socket vanishes and its flow is removed, then the table is dropped: the front-end's kernel answers the client.
#[test]
fn without_its_flow_a_connection_is_reset() {
    if Network::is_left_out() {
        return;
    }
    let mut cluster = Cluster::new(2);
    let listener = cluster.listen(VIPS[0]);
    let [mut lost, mut kept] = [0, 1].map(|node| {
        let connection = cluster.connect(&listener);
        cluster.move_to(connection, Place::Node(node))
    });
    exchange(&mut lost, 1);
    let flow = flow_of(&lost.server);
    baton_sys::tcp_repair::freeze(&lost.server).unwrap();
    drop(lost.server);
    let reports: Vec<_> = cluster.table.reports().collect();
    assert_eq!(reports.len(), 2);
    assert!(reports.iter().all(|(_, report)| report.idle < Duration::from_secs(600)));
    assert!(cluster.table.remove(flow));
    assert_is_reset(&mut lost.client);
    exchange(&mut kept, 2);
    assert_eq!(cluster.hosts.front.counter("Tcp", "OutRsts").unwrap(), 1);

    drop(cluster.table);
    assert_is_reset(&mut kept.client);
    assert_eq!(cluster.hosts.front.counter("Tcp", "OutRsts").unwrap(), 2);
}

fn assert_is_reset(client: &mut TcpStream) {
    client.write_all(b"?").unwrap();
    let refused = client.read(&mut [0; 1]).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionReset);
}

/// Goal: curl, which knows nothing of all this, gets two answers of two hosts over one connection.
#[test]
fn curl_notices_nothing() {
    if Network::is_left_out() {
        return;
    }
    const BODY_BYTES: usize = 20 << 20;
    let mut cluster = Cluster::new(2);
    let listener = cluster.listen(VIPS[0]);
    let urls = [1, 2].map(|number| format!("http://{}/{number}", ClusterHosts::VIP_V4));
    let mut curl = cluster.hosts.client.command("curl");
    curl.args(["-sS", "--fail", "-w", "%{num_connects} "]).args(&urls);
    let curl = curl.args(["-o", "/dev/null", "-o", "/dev/null"]).stdout(std::process::Stdio::piped());
    let curl = curl.spawn().unwrap();
    let server = listener.accept().unwrap().0;
    // The client's end is curl's.
    let client = server.try_clone().unwrap();
    let mut connection = Connection { client, server, place: Place::Front };
    for place in [Place::Node(0), Place::Node(1)] {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            connection.server.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        connection = cluster.move_to(connection, place);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
        connection.server.write_all(head.as_bytes()).unwrap();
        connection.server.write_all(&vec![b'x'; BODY_BYTES]).unwrap();
    }
    let output = curl.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1 0 ", "connections that each request made");
    cluster.assert_nothing_went_wrong();
}

fn wait_for_input(server: &TcpStream, bytes: u64) {
    wait_until(|| rustix::io::ioctl_fionread(server).unwrap() >= bytes);
}

/// Packets are processed behind the call that sends them.
fn wait_until(holds: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < limit, "it does not come to that");
        std::thread::yield_now();
    }
}

/// Closes with a RST.
fn reset(client: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
    drop(client);
}

fn connect_from(address: SocketAddr, to: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    bind(&socket, &address).unwrap();
    connect(&socket, &to).unwrap();
    socket.into()
}
