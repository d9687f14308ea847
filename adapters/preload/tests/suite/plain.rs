//! Without an offer, or with one that cannot be taken up, everything is as it would be without the library.

use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::process::Command;

use baton_fcgi::params;

use super::port::Port;
use super::support::pattern::{self, assert_pattern};
use super::support::program::{Program, installed};
use super::support::server::MODERN;
use super::support::{Client, Fpm, Outcome, Request, Server, wait_for};

#[test]
fn the_server_learns_what_the_library_can_do() {
    let fpm = Fpm::with_one_worker("");
    let values = Server::connect(&fpm.socket()).ask(&["FCGI_MPXS_CONNS", "BATON_TRANSPORTS"], 2);
    let value = |name: &str| values.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str());
    assert_eq!((value("BATON_TRANSPORTS"), value("FCGI_MPXS_CONNS")), (Some("passfd,shm"), Some("0")));
    // Only a server that asks for it gets it.
    let values = Server::connect(&fpm.socket()).ask(&["FCGI_MPXS_CONNS"], 1);
    assert_eq!(values, [("FCGI_MPXS_CONNS".to_owned(), "0".to_owned())]);
}

#[test]
fn requests_with_and_without_offer_take_turns_on_one_connection() {
    let fpm = Fpm::with_one_worker("");
    let script = fpm.script("bytes.php", pattern::SCRIPT);
    let mut server = Server::connect(&fpm.socket());
    for bytes in [1, 8192, 100_000, 300_000] {
        let request = Request::get(&script).query(format!("bytes={bytes}&step=50000"));
        assert_pattern(server.plain(&request).body(), bytes);
        let (outcome, response) = server.answer(&request, MODERN);
        outcome.complete();
        assert_pattern(&response.body, bytes);
    }
}

#[test]
fn connections_need_not_be_kept() {
    let fpm = Fpm::with_one_worker("");
    let script = fpm.script("bytes.php", pattern::SCRIPT);
    for bytes in [1, 100_000, 2] {
        let request = Request {
            keep_connection: false,
            ..Request::get(&script).query(format!("bytes={bytes}&step={bytes}"))
        };
        let mut server = Server::connect(&fpm.socket());
        let (outcome, response) = server.answer(&request, MODERN);
        outcome.complete();
        assert_pattern(&response.body, bytes);
        assert!(!server.read_part(&mut Outcome::default()), "php-fpm closes the connection");
        // It waits for the server to do the same.
        drop(server);
        let mut server = Server::connect(&fpm.socket());
        assert_pattern(server.plain(&request).body(), bytes);
    }
}

#[test]
fn an_unknown_transport_is_declined_and_its_descriptors_closed() {
    let fpm = Fpm::with_one_worker("");
    let script = fpm.script("hello.php", "<?php echo 'hello';");
    let mut server = Server::connect(&fpm.socket());
    for offer in
        ["teleport fds=1 patience=100\n", "passfd patience=100\n", "shm fds=1 size=4096 at=0 free=4096\n"]
    {
        let (mut client, server_end) = Client::connect();
        let mut block = Vec::new();
        for (name, value) in
            [("BATON_OFFER", offer), ("SCRIPT_FILENAME", script.as_str()), ("REQUEST_METHOD", "GET")]
        {
            params::push(&mut block, name.as_bytes(), value.as_bytes());
        }
        let descriptors = [server_end.as_fd()];
        let request = Request::get(&script);
        server.send_blocks(&request, &[&block], if offer.contains("fds=1") { &descriptors } else { &[] });
        let outcome = server.read_outcome(&request);
        assert_eq!((outcome.body(), outcome.answered), (&b"hello"[..], None), "{offer}");
        drop(server_end);
        assert_eq!(client.read_to_end(), b"", "no other copy of the socket is open");
    }
}

/// Responses with instructions go to the server, and the connection is kept.
#[test]
fn answers_for_the_server_to_complete_are_plain() {
    let fpm = Fpm::with_one_worker("");
    let script = fpm.script("named.php", "<?php header($_GET['field'] . ': /x'); echo 'body';");
    let hello = fpm.script("hello.php", "<?php echo 'hello';");
    let mut server = Server::connect(&fpm.socket());
    for field in ["X-Sendfile", "X-Accel-Redirect", "X-ZeroCopy"] {
        let (mut client, server_end) = Client::connect();
        let outcome =
            server.offer(&Request::get(&script).query(format!("field={field}")), MODERN, &server_end);
        assert_eq!((outcome.body(), outcome.answered), (&b"body"[..], None));
        assert!(String::from_utf8_lossy(&outcome.stdout).contains(&format!("{field}: /x")));
        drop(server_end);
        assert_eq!(client.read_to_end(), b"", "the client was sent nothing");
        let (outcome, response) = server.answer(&Request::get(&hello), MODERN);
        outcome.complete();
        assert_eq!(response.text(), "hello");
    }
}

#[test]
fn another_server_in_front_notices_nothing() {
    for keep in ["off", "on"] {
        let fpm = Fpm::start("pm = static\npm.max_children = 2\nphp_value[post_max_size] = 16M\n");
        fpm.script("bytes.php", pattern::SCRIPT);
        fpm.script("echo.php", "<?php echo file_get_contents('php://input');");
        let nginx = Nginx::start(&fpm, keep);
        for (bytes, step) in [(1, 1), (8192, 8192), (100_000, 999), (5_000_000, 5_000_000)] {
            let mut client = nginx.connect();
            client.write(
                format!("GET /bytes.php?bytes={bytes}&step={step} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
                    .as_bytes(),
            );
            let response = client.read_response("GET");
            assert_eq!(response.status, 200);
            assert_pattern(&response.body, bytes);
        }
        let mut client = nginx.connect();
        let posted = pattern::pattern(3_000_000);
        client.write(
            format!("POST /echo.php HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n\r\n", posted.len())
                .as_bytes(),
        );
        client.write(&posted);
        assert_pattern(&client.read_response("POST").body, posted.len());
    }
}

#[test]
fn tcp_sockets_are_none_of_our_business() {
    let port = Port::reserve();
    let fpm =
        Fpm::start_listening(&format!("127.0.0.1:{}", port.number), "pm = static\npm.max_children = 1\n");
    let script = fpm.script("server.php", "<?php echo $_SERVER['BATON_OFFER'];");
    let mut block = Vec::new();
    for (name, value) in
        [("BATON_OFFER", "as it is"), ("SCRIPT_FILENAME", &script), ("REQUEST_METHOD", "GET")]
    {
        params::push(&mut block, name.as_bytes(), value.as_bytes());
    }
    let mut bytes = Vec::new();
    baton_fcgi::request::push_begin(&mut bytes, 1, false);
    baton_fcgi::request::push_params(&mut bytes, 1, &block);
    baton_fcgi::request::push_stdin_end(&mut bytes, 1);
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port.number)).expect("it listens");
    stream.write_all(&bytes).expect("sent");
    let mut answer = Vec::new();
    std::io::Read::read_to_end(&mut stream, &mut answer).expect("an answer");
    assert!(String::from_utf8_lossy(&answer).contains("as it is"));
}

/// An nginx before a php-fpm.
struct Nginx {
    _program: Program,
    port: Port,
}

impl Nginx {
    fn start(fpm: &Fpm, keep: &str) -> Self {
        let port = Port::reserve();
        let folder = fpm.folder().join("nginx");
        fs::create_dir(&folder).expect("a folder");
        let settings = format!(
            "daemon off; pid {folder}/pid; error_log {folder}/error; user root;
             events {{ worker_connections 64; }}
             http {{
                access_log off; client_max_body_size 16m; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;
                fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
                upstream php {{ server unix:{socket}; keepalive 1; }}
                server {{
                    listen 127.0.0.1:{port}; root {root};
                    location / {{
                        include /etc/nginx/fastcgi_params; fastcgi_pass php; fastcgi_keep_conn {keep};
                        fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
                    }}
                }}
             }}",
            folder = folder.display(),
            port = port.number,
            socket = fpm.socket().display(),
            root = fpm.folder().display(),
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, settings).expect("settings");
        let nginx = installed("nginx-light", &["/usr/sbin/nginx"]);
        let program =
            Program::start(Command::new(nginx).arg("-e").arg(folder.join("error")).arg("-c").arg(file));
        wait_for("nginx", || std::net::TcpStream::connect(("127.0.0.1", port.number)).ok());
        Self { _program: program, port }
    }

    fn connect(&self) -> Client {
        Client::connect_to(("127.0.0.1", self.port.number))
    }
}
