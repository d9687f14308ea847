//! Clients that are let in, and those that are not, by their addresses.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;

use crate::common::certificate;
use crate::common::folder::Folder;
use crate::common::server::Server;
use crate::site::{SECRET, attack, run};

crate::protocols::over_every_protocol!(
    no_way_leads_into_a_denied_route,
    no_way_leads_past_the_clients_that_are_allowed,
    every_kind_of_answer_is_guarded,
);

fn no_way_leads_into_a_denied_route(server: &Server) {
    attack(&mut server.agent(), "denied", 403);
}

fn no_way_leads_past_the_clients_that_are_allowed(server: &Server) {
    attack(&mut server.agent(), "allowed", 403);
}

/// A program, a fixed answer and a redirect; and the body of a request that is refused is no next request.
fn every_kind_of_answer_is_guarded(server: &Server) {
    let mut client = server.agent();
    for path in ["/denied/run.cgi", "/denied/run.cgi/x", "/denied/none.cgi", "/fixed", "/fixed/x", "/moved"] {
        let response = client.get(path);
        assert_eq!(response.status, 403, "{path}: {}", response.text());
        assert!(!response.text().contains(SECRET) && response.field("location").is_none(), "{path}");
    }
    assert_eq!(client.get("/fixed").field("x-own"), Some("1"), "fields of errors, too");
    assert_eq!(client.send("POST", "/denied/run.cgi", b"GET /open/secret.txt HTTP/1.1\r\n\r\n").status, 403);
    assert!(client.get("/open/run.cgi").text().contains("REMOTE_ADDR=127.0.0.1"));
    assert!(client.get("/let-in/secret.txt").text().contains(SECRET));
}

/// A client with another address of this host.
fn get_from(address: SocketAddr, from: &str, path: &str) -> String {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
    let socket =
        socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("a socket");
    bind(&socket, &SocketAddr::new(from.parse().expect("an address"), 0)).expect("it is bound");
    connect(&socket, &address).expect("connected");
    let mut stream = TcpStream::from(socket);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn a_denied_address_is_denied_where_its_network_is_allowed() {
    let server = crate::site::server("auto");
    let get = |from| get_from(server.address(), from, "/let-in/secret.txt");
    assert!(get("127.1.2.3").contains(SECRET));
    assert!(get("127.9.2.3").starts_with("HTTP/1.1 403 "));
}

/// A site that sends clients to TLS, with these guards, and a password.
fn sends_to_tls(guards: &str) -> Server {
    let folder = Folder::new();
    certificate::install(folder.base());
    let configuration = "[[site]]\nlisten = ['127.0.0.1:0', '127.0.0.2:0 tls']\nroot = '{root}'\nredirect_https = true\n\
         headers = { X-Own = '1' }\nbasic_auth = { users = { ada = '$2y$04$abcdefghijklmnopqrstuuRnnl1gHh6kDfcVkhpTUTFcmVTCp4SPe' } }\n\
         tls = { certificate = '{base}/localhost.pem', key = '{base}/localhost.key' }\n";
    Server::run(folder, &format!("{configuration}{guards}"))
}

/// The route that sends clients to TLS is none of the configuration, and is guarded by the site all the same.
#[test]
fn a_client_that_is_denied_is_not_sent_to_tls() {
    let server = sends_to_tls("deny = ['127.9.2.3']");
    let denied = get_from(server.address(), "127.9.2.3", "/");
    assert!(denied.starts_with("HTTP/1.1 403 ") && denied.contains("X-Own: 1"), "{denied}");
    let sent = get_from(server.address(), "127.1.2.3", "/");
    assert!(sent.starts_with("HTTP/1.1 308 "), "no password is asked for in clear: {sent}");
}

/// A client that may yet say a password is sent to where it is asked for one.
#[test]
fn a_client_with_a_choice_is_sent_to_tls() {
    let server = sends_to_tls("allow = ['127.1.2.3']\nsatisfy = 'any'");
    for client in ["127.1.2.3", "127.9.2.3"] {
        let sent = get_from(server.address(), client, "/");
        assert!(sent.starts_with("HTTP/1.1 308 "), "{client}: {sent}");
    }
}

/// Clients of a Unix socket have no address: only `unix:` means them.
#[test]
fn clients_of_a_unix_socket_are_named_as_such() {
    let server = run(
        "[[site]]\nlisten = ['unix:{base}/site.sock', '127.0.0.1:0']\nroot = '{root}'\nallow = ['unix:']\n\
         [[site.route]]\npath = '/denied'\nallow = 'all'\ndeny = ['unix:']\n",
    );
    let get = |path: &str| {
        let mut stream = UnixStream::connect(server.folder().base().join("site.sock")).expect("connected");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    assert!(get("/open/secret.txt").contains(SECRET));
    assert!(get("/denied/secret.txt").starts_with("HTTP/1.1 403 "));
    assert_eq!(server.get("/open/secret.txt").status, 403);
    assert_eq!(server.get("/none").status, 403, "where there is nothing, too");
    assert_eq!(server.get("/denied/secret.txt").text(), SECRET);
}
