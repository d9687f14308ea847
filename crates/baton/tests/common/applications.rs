//! Applications that answer with what a test's function makes of the parameters of a request.

#![allow(dead_code, reason = "each suite uses a part of it")]

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use baton_responder::Responder;

/// The parameters of a request.
pub(crate) type Parameters = HashMap<String, String>;

/// Answers FastCGI requests at a socket, with a head and a body as CGI has them.
pub(crate) fn answer_fastcgi(socket: &Path, answer: fn(&Parameters) -> String) {
    let mut responder = Responder::bind(socket).expect("a socket");
    open_to_all(socket);
    std::thread::spawn(move || {
        loop {
            let mut request = responder.next_request().expect("a request");
            let pairs = request.variables().map(|(name, value)| (lossy(name), lossy(value)));
            let parameters = pairs.collect();
            // A server that has ended takes nothing.
            let _ = request.write_all(answer(&parameters).as_bytes());
        }
    });
}

/// The same of SCGI.
pub(crate) fn answer_scgi(socket: &Path, answer: fn(&Parameters) -> String) {
    let listener = UnixListener::bind(socket).expect("a socket");
    open_to_all(socket);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let connection = connection.expect("a connection");
            let parameters = scgi_parameters(&connection);
            let _ = (&connection).write_all(answer(&parameters).as_bytes());
        }
    });
}

/// The parameters of the request on a connection, which is read to its end.
fn scgi_parameters(connection: &UnixStream) -> Parameters {
    let mut input = BufReader::new(connection);
    let mut length = Vec::new();
    input.read_until(b':', &mut length).expect("a netstring");
    let length: usize = lossy(&length[..length.len() - 1]).parse().expect("a length");
    let mut head = vec![0; length + 1];
    input.read_exact(&mut head).expect("a head");
    let words: Vec<_> = head.split(|byte| *byte == 0).map(lossy).collect();
    let parameters: Parameters =
        words.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    let mut body = vec![0; parameters["CONTENT_LENGTH"].parse().expect("a length")];
    input.read_exact(&mut body).expect("a body");
    parameters
}

/// The server's workers may be another user's.
fn open_to_all(socket: &Path) {
    fs::set_permissions(socket, Permissions::from_mode(0o777)).expect("permissions");
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
