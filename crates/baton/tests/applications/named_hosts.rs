//! Goal: an application that is named by its host is found where DNS says that it is, now and later. Method: a DNS server
//! in the test, whose answers the test changes, and applications at loopback addresses with one port.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use crate::common::dns::Dns;
use crate::common::folder::Folder;
use crate::common::server::{Server, wait_until};

const ONE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
const TWO: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Where nothing listens.
const NOWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

#[test]
fn an_application_is_found_where_dns_says() {
    let port = application(SocketAddr::from((ONE, 0)), "one");
    application(SocketAddr::from((TWO, port)), "two");
    let dns = Dns::start();
    dns.change(|zone| zone.addresses = vec![ONE]);
    // Several workers would learn of a move one after the other.
    let server = Server::run(
        Folder::new(),
        &format!(
            "processes = 1\ndns_servers = ['{}']\n[[site]]\nlisten = '127.0.0.1:0'\n\
             [[site.route]]\npath = '/app'\nscgi = {{ to = 'app.test:{port}' }}\n\
             [[site.route]]\npath = '/gone'\nscgi = {{ to = 'gone.test:{port}' }}\n",
            dns.address
        ),
    );
    assert_eq!(server.get("/app").text(), "one", "the first request finds an address");
    assert_eq!(server.get("/gone").status, 502);
    wait_until("the reason", || server.said().contains("no address of its host is known"));

    dns.change(|zone| zone.addresses = vec![TWO]);
    wait_until("the move", || server.get("/app").text() == "two");

    // The last answer counts while there is no other.
    let asked = dns.change(|zone| {
        zone.is_silent = true;
        zone.questions
    });
    wait_until("a question", || dns.change(|zone| zone.questions) > asked);
    assert_eq!(server.get("/app").text(), "two");

    // Where one address does not answer, the next one is tried.
    dns.change(|zone| (zone.is_silent, zone.addresses) = (false, vec![NOWHERE, TWO]));
    wait_until("both addresses", || server.said().contains("its addresses are now 127.0.0.3, 127.0.0.2"));
    for _ in 0..4 {
        assert_eq!(server.get("/app").text(), "two");
    }
}

/// `localhost` and names below it need no DNS.
#[test]
fn names_of_this_host_need_no_server() {
    let port = application(SocketAddr::from((ONE, 0)), "here");
    let server = Server::run(
        Folder::new(),
        &format!(
            "[[site]]\nlisten = '127.0.0.1:0'\n[[site.route]]\npath = '/'\nscgi = {{ to = 'app.localhost:{port}' }}\n"
        ),
    );
    assert_eq!(server.get("/").text(), "here");
}

/// Starts an SCGI application that answers who it is. Returns its port.
fn application(address: SocketAddr, who: &'static str) -> u16 {
    let listener = TcpListener::bind(address).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut input = BufReader::new(connection.expect("a connection"));
            let mut length = Vec::new();
            input.read_until(b':', &mut length).expect("a netstring");
            let length: usize =
                String::from_utf8_lossy(&length[..length.len() - 1]).parse().expect("a length");
            input.read_exact(&mut vec![0; length + 1]).expect("a head");
            write!(input.get_mut(), "Content-Type: text/plain\r\n\r\n{who}").expect("a client");
        }
    });
    port
}
