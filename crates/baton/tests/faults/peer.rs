//! Clients that misbehave: they vanish, they hardly read, they are cut off.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

use crate::common::server::PATIENCE;

/// How a connection is closed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Farewell {
    /// By `close`, usually with a FIN.
    Close,
    /// With a reset.
    Reset,
}

pub(crate) const FAREWELLS: [Farewell; 2] = [Farewell::Close, Farewell::Reset];

/// A connection on which these bytes have been sent.
pub(crate) fn connect_and_send(address: SocketAddr, bytes: impl AsRef<[u8]>) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.write_all(bytes.as_ref()).expect("sent");
    stream
}

/// A request for a path.
pub(crate) fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// Ends the connection from this side.
pub(crate) fn leave(stream: TcpStream, how: Farewell) {
    if matches!(how, Farewell::Reset) {
        set_socket_linger(&stream, Some(Duration::ZERO)).expect("an option");
    }
    drop(stream);
}

/// The bytes before the end of the connection, and whether it ended by a FIN.
pub(crate) fn read_to_the_end(mut stream: &TcpStream) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let result = stream.read_to_end(&mut bytes);
    match result {
        Ok(_) => (bytes, true),
        Err(error) if is_cut_off(&error) => (bytes, false),
        Err(error) => panic!("neither the end nor a reset after {} bytes: {error}", bytes.len()),
    }
}

/// Whether the other side has reset the connection.
pub(crate) fn is_cut_off(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}
