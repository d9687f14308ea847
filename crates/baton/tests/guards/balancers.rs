//! Load balancers that say in front of a connection whose it is, by the PROXY protocol.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::common::agent::Agent;
use crate::common::protocol::Protocol;
use crate::common::server::Server;
use crate::site::{SECRET, run};

fn server(architecture: &str, from: &str) -> Server {
    run(&format!(
        "architecture = '{architecture}'\n[[site]]\n{{listen}}\nroot = '{{root}}'\nproxy_protocol = {{ from = ['{from}'] \
         }}\nallow = ['192.0.2.0/24', '2001:db8::/32']\n[[site.route]]\npath = '/open'\ncgi = {{ scripts = ['.cgi'] }}\n"
    ))
}

fn v2(client: [u8; 4]) -> Vec<u8> {
    let signature = b"\r\n\r\n\0\r\nQUIT\n";
    [&signature[..], &[0x21, 0x11, 0, 12], &client, &[127, 0, 0, 1, 0x12, 0x67, 0, 80]].concat()
}

#[test]
fn clients_are_known_by_what_the_balancer_says() {
    for architecture in ["auto", "pipeline", "mt", "sped"] {
        let server = server(architecture, "127.0.0.0/8");
        for protocol in Protocol::ALL {
            let address = server.over(protocol).address();
            let connect = |header: &[u8]| Agent::connect_behind(address, protocol, header);
            let line = b"PROXY TCP4 192.0.2.7 127.0.0.1 4711 80\r\n";
            for header in [&line[..], &v2([192, 0, 2, 7])] {
                let mut client = connect(header);
                assert_eq!(client.get("/open/secret.txt").text(), SECRET, "{architecture} {protocol:?}");
                let told = client.get("/open/run.cgi").text().to_owned();
                assert!(
                    told.contains("REMOTE_ADDR=192.0.2.7\n") && told.contains("REMOTE_PORT=4711\n"),
                    "{told}"
                );
            }
            let six = b"PROXY TCP6 2001:db8::7 ::1 4711 80\r\n";
            assert_eq!(connect(six).get("/open/secret.txt").text(), SECRET);
            assert_eq!(connect(&v2([198, 51, 100, 9])).get("/open/secret.txt").status, 403);
            assert_eq!(connect(b"PROXY UNKNOWN\r\n").get("/open/secret.txt").status, 403, "its own");
        }
    }
}

/// Byte by byte, and with a request right behind it.
#[test]
fn a_header_may_come_in_pieces() {
    for architecture in ["auto", "pipeline", "threads"] {
        let server = server(architecture, "127.0.0.1");
        for header in [&b"PROXY TCP4 192.0.2.7 127.0.0.1 4711 80\r\n"[..], &v2([192, 0, 2, 7])] {
            let request = b"GET /open/secret.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            let all = [header, request].concat();
            for first in [1, 5, 12, 16, header.len() - 1, header.len(), header.len() + 3, all.len()] {
                let mut stream = TcpStream::connect(server.address()).expect("connected");
                stream.set_nodelay(true).expect("an option");
                for piece in [&all[..first], &all[first..]] {
                    stream.write_all(piece).expect("sent");
                    std::thread::yield_now();
                }
                let mut answer = String::new();
                stream.read_to_string(&mut answer).expect("an answer");
                assert!(answer.ends_with(SECRET), "{architecture} {first}: {answer}");
            }
        }
    }
}

/// A balancer that says nothing, or rubbish, gets no answer at all; nor does it get to speak as itself.
#[test]
fn a_connection_without_its_header_is_closed() {
    let server = server("auto", "127.0.0.1");
    for begin in [
        "GET /open/secret.txt HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n",
        "PROXY TCP4 192.0.2.7\r\nGET /open/secret.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        "PROXY TCP5 192.0.2.7 127.0.0.1 1 1\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(server.address()).expect("connected");
        stream.write_all(begin.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        // A reset is an end, too.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty(), "{begin}: {}", String::from_utf8_lossy(&answer));
    }
    server.wait_until_said(
        "a connection from 127.0.0.1 was closed: it does not begin with a header of the PROXY protocol",
    );
}

/// From any other address the header is what it is for a server without a balancer: no request.
#[test]
fn a_client_that_is_no_balancer_is_not_believed() {
    let server = server("auto", "10.0.0.0/8");
    let mut client = server.connect();
    client.send("PROXY TCP4 192.0.2.7 127.0.0.1 1 1\r\nGET /open/secret.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response().status, 400);
    assert_eq!(server.get("/open/secret.txt").status, 403);
}
