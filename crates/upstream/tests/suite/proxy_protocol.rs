//! Goal: a connection says whose it is before anything else, and is used for that client only. Method: an application that
//! reads the header of each connection.

use std::io::Read;
use std::sync::{Arc, Mutex};

use baton_tls::{OriginPolicy, Trust};
use baton_upstream::{Application, ClientEnds, ProxyVersion, Request};

use crate::common::app::App;
use crate::common::driver::{Driver, Ending};
use crate::common::{application, get};

const PAGE: &[u8] = b"Content-Type: text/plain\r\n\r\nok";

/// An application that notes the header of each connection, up to its line end.
fn app() -> (App, Arc<Mutex<Vec<String>>>) {
    let headers = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&headers);
    let app = App::start(move |peer| {
        let mut header = Vec::new();
        while !header.ends_with(b"\r\n") {
            let mut byte = [0];
            peer.socket.read_exact(&mut byte).unwrap();
            header.push(byte[0]);
        }
        noted.lock().unwrap().push(String::from_utf8(header).unwrap());
        while let Some(asked) = peer.request() {
            peer.answer_at_once(&asked, PAGE);
        }
    });
    (app, headers)
}

/// A request of the client at this port.
fn of(application: &Arc<Application>, port: u16) -> Request {
    let client = ([192, 0, 2, 1], port).into();
    let ends = Some(ClientEnds { client, server: ([192, 0, 2, 2], 80).into() });
    Request { ends, ..get(application) }
}

fn line(port: u16) -> String {
    format!("PROXY TCP4 192.0.2.1 192.0.2.2 {port} 80\r\n")
}

#[test]
fn each_client_has_connections_of_its_own() {
    let (app, headers) = app();
    let application = application(&app, |settings| {
        settings.send_proxy = Some(ProxyVersion::V1);
        settings.connections_max = 1;
        settings.idle_timeout_ms = 20_000;
    });
    let mut driver = Driver::new();
    for (id, port) in [(1, 1000), (2, 1000), (3, 2000), (4, 2000), (5, 1000)] {
        assert_eq!(driver.ask(id, of(&application, port)).ending, Some(Ending::Complete), "{id}");
    }
    assert_eq!(driver.ask(6, get(&application)).ending, Some(Ending::Complete));
    let expected = [line(1000), line(2000), line(1000), "PROXY UNKNOWN\r\n".into()];
    assert_eq!(*headers.lock().unwrap(), expected, "an idle connection of another client makes room");
}

/// Those that wait get connections of their own, too.
#[test]
fn requests_that_wait_are_not_sent_as_anothers() {
    let (app, headers) = app();
    let application = application(&app, |settings| {
        settings.send_proxy = Some(ProxyVersion::V1);
        settings.connections_max = 1;
    });
    let mut driver = Driver::new();
    for id in 1..=4 {
        driver.begin(id, of(&application, 1000 * (1 + id as u16 % 2)));
    }
    for id in 1..=4 {
        assert_eq!(driver.finish(id).ending, Some(Ending::Complete), "{id}");
    }
    assert_eq!(*headers.lock().unwrap(), [line(2000), line(1000), line(2000), line(1000)]);
}

/// The other side reads it before it speaks TLS.
#[test]
fn it_comes_before_tls() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut first = [0; 17];
        socket.read_exact(&mut first).unwrap();
        first
    });
    let endpoint = baton_upstream::Endpoint::Shared(baton_upstream::Address::Inet(address));
    let mut settings = baton_upstream::Settings::new("test", endpoint);
    settings.send_proxy = Some(ProxyVersion::V2);
    settings.tls = Some(OriginPolicy::new("app.test", Trust::Anything, None).unwrap());
    let application = Application::new(settings).unwrap();
    let mut driver = Driver::new();
    driver.ask(1, get(&application)).why();
    let first = server.join().unwrap();
    assert_eq!(&first[..16], b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0");
    assert_eq!(first[16], 0x16, "a handshake");
}
