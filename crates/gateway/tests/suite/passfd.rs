//! The application answers on the client's own socket.

use std::io::{Read, Write};
use std::sync::Arc;

use baton_gateway::TransportChoice;

use crate::common::app::{App, Offered};
use crate::common::driver::{Driver, Ending};
use crate::common::{application, client, handed};

/// Answers on the socket that came with the request.
fn answer_there(peer: &mut crate::common::app::Peer) {
    while let Some(asked) = peer.request() {
        let Offered::PassFd { client, fields } = &asked.offer else { panic!("no client came") };
        assert_eq!(fields, b"Server: test\r\n");
        let mut socket = std::net::TcpStream::from(client.try_clone().unwrap());
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\nhello").unwrap();
        drop(socket);
        let asked = crate::common::app::Asked { offer: Offered::Nothing, ..asked };
        peer.answered(&asked, 5);
    }
}

#[test]
fn the_client_is_answered_by_the_application() {
    let app = App::start(answer_there);
    let application = application(&app, |settings| settings.transport = TransportChoice::PassFd);
    let mut driver = Driver::new();
    let (server, mut client) = client();
    for whose in 0..3 {
        let got = driver.ask(whose, handed(&application, &server));
        let Some(Ending::Answered(answered)) = got.ending else { panic!("{got:?}") };
        assert!(answered.complete && answered.may_go_on);
        assert_eq!(answered.body_bytes, 5);
        assert_eq!(Arc::strong_count(&server), 1, "the socket is ours alone again");
        let mut received = [0; 24];
        client.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"HTTP/1.1 200 OK\r\n\r\nhello");
    }
    assert_eq!(app.accepted(), 1);
}
