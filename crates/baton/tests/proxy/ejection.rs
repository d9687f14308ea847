//! What ejects an origin among several: the failures that several clients meet, and not what one of them asks for.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

use crate::common::server::{PATIENCE, Server};
use crate::origin::{Origin, Peer};
use crate::peers::{server_of, urls};

/// Says 503 below `/busy`, nothing below `/hang`, two lengths below `/broken`, and else answers well.
fn moody(peer: &mut Peer) {
    while let Some(seen) = peer.request() {
        match seen.path() {
            path if path.starts_with("/busy") => {
                peer.send("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy");
            }
            path if path.starts_with("/hang") => return peer.wait_for_end(),
            path if path.starts_with("/broken") => {
                let lengths = "Content-Length: 1\r\nTransfer-Encoding: chunked";
                return peer.send(format!("HTTP/1.1 200 OK\r\n{lengths}\r\n\r\n"));
            }
            _ => peer.answer("", "well"),
        }
    }
}

/// A server, and so many such origins.
fn site(count: usize, more: &str) -> (Server, Vec<Origin>) {
    let origins: Vec<_> = (0..count).map(|_| Origin::start(moody)).collect();
    let addresses: Vec<_> = origins.iter().map(Origin::address).collect();
    (server_of("processes = 1\n", &urls(&addresses), more), origins)
}

/// Asks from this address of the loopback network. Returns the status.
fn ask_from(host: u8, server: &Server, path: &str) -> u16 {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, host), 0)).expect("an address");
    connect(&socket, &server.address()).expect("a connection");
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").expect("sent");
    let mut response = Vec::new();
    stream.read_to_end(&mut response).expect("a response");
    let text = String::from_utf8_lossy(&response);
    text.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{path}: {text}"))
}

fn ejected(server: &Server) -> usize {
    server.status_text().matches("\"state\":\"ejected\"").count()
}

/// Every origin still gets its turn.
fn all_are_asked(server: &Server, origins: &[Origin]) {
    let seen = || origins.iter().map(|origin| origin.seen("/well").len()).collect::<Vec<_>>();
    let before = seen();
    (0..2 * origins.len()).for_each(|_| assert_eq!(ask_from(9, server, "/well"), 200));
    assert!(seen().iter().zip(before).all(|(after, before)| *after == before + 2), "{:?}", seen());
}

/// The bug: five requests of a URL that answers 503 left an origin out for all clients.
#[test]
fn a_status_ejects_no_origin_unless_it_is_listed() {
    let (server, origins) = site(2, "");
    for number in 0..12 {
        assert_eq!(ask_from(1 + number % 3, &server, &format!("/busy/{number}")), 503);
    }
    assert_eq!(ejected(&server), 0);
    all_are_asked(&server, &origins);
}

/// Goal: one client ejects no origin for others, whatever it asks for and however often; its requests go on to the next one.
#[test]
fn one_client_ejects_no_origin() {
    let (server, origins) =
        site(2, "head_ms = 300, eject = { failures = 1, statuses = [503], window_ms = 600000 }");
    for number in 0..6 {
        assert_eq!(ask_from(1, &server, &format!("/busy/{number}")), 503);
        assert_eq!(ask_from(1, &server, &format!("/broken/{number}")), 502);
        assert_eq!(ask_from(1, &server, &format!("/hang/{number}")), 504);
    }
    assert!(origins.iter().all(|origin| origin.seen("/hang").len() == 6), "each request was tried at both");
    all_are_asked(&server, &origins);
    assert_eq!(ejected(&server), 0);
    // Enough for the others, who meet the same.
    (0..2).for_each(|_| assert_eq!(ask_from(2, &server, "/busy/0"), 503));
    assert_eq!(ejected(&server), 1);
}

/// Goal: one page that fails for all clients ejects no origin for the other pages.
#[test]
fn one_page_ejects_no_origin() {
    let (server, origins) = site(2, "eject = { failures = 1, statuses = [503], window_ms = 600000 }");
    for host in 1..9 {
        assert_eq!(ask_from(host, &server, &format!("/busy?{host}")), 503);
    }
    assert_eq!(ejected(&server), 0);
    all_are_asked(&server, &origins);
}

/// Goal: what several clients meet on several paths ejects an origin, by answers that refuse, make no sense or never come, and at
/// least half of the group stays in.
#[test]
fn clients_that_meet_the_same_eject_up_to_half() {
    for (manner, status) in [("/busy", 503), ("/broken", 502), ("/hang", 504)] {
        for (count, out) in [(2, 1), (3, 1), (4, 2)] {
            let head_ms = if status == 504 { 100 } else { 20_000 };
            let eject =
                "failures = 3, statuses = [503], window_ms = 600000, out_ms = 600000, out_ms_max = 600000";
            let (server, _origins) = site(count, &format!("head_ms = {head_ms}, eject = {{ {eject} }}"));
            for number in 0..6 * count {
                let got = ask_from(1 + (number / count) as u8 % 4, &server, &format!("{manner}/{number}"));
                assert_eq!(got, status, "{manner}, {count} origins");
            }
            assert_eq!(ejected(&server), out, "{manner}, {count} origins");
            server.wait_until_said("after repeated failures: ");
        }
    }
}

/// Goal: an origin that answers more often than it fails is no failing one.
#[test]
fn more_answers_than_failures_keep_an_origin_in() {
    let (server, origins) = site(2, "eject = { failures = 3, statuses = [503], window_ms = 600000 }");
    for number in 0..12 {
        let host = 1 + number % 4;
        // Two of each for either origin.
        (0..4).for_each(|_| assert_eq!(ask_from(host, &server, "/well-1"), 200));
        assert_eq!(ask_from(host, &server, &format!("/busy/{number}")), 503);
        assert_eq!(ask_from(host, &server, &format!("/busy/{number}?")), 503);
    }
    assert_eq!(ejected(&server), 0);
    all_are_asked(&server, &origins);
}

/// Goal: behind a proxy that is trusted, clients are those that it names, and one of IPv6 has a network.
#[test]
fn clients_are_those_that_a_trusted_proxy_names() {
    let (server, _origins) = site(
        2,
        "trusted = ['127.0.0.0/8', '10.0.0.0/8'], eject = { failures = 1, statuses = [503], window_ms = 600000 }",
    );
    let mut agent = server.agent();
    let mut ask = |number: u32, from: &str| {
        let fields = format!("X-Forwarded-For: {from}\r\n");
        (0..2).for_each(|_| assert_eq!(agent.ask("GET", &format!("/busy/{number}"), &fields).status, 503));
    };
    for (number, from) in
        ["2001:db8::1", "2001:db8::2", "192.0.2.7, 2001:db8::3, 10.1.1.1"].iter().enumerate()
    {
        ask(number as u32, from);
    }
    assert_eq!(ejected(&server), 0, "they are one client");
    ask(9, "2001:db8:0:1::1");
    assert_eq!(ejected(&server), 1);
}
