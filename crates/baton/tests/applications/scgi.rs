//! An SCGI application: as simple as they come, a thread for each connection.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use crate::program;

/// Starts an application at a socket. It ends with the tests.
pub(crate) fn start(socket: &Path, folder: &Path) {
    let listener = UnixListener::bind(socket).expect("a socket");
    fs::set_permissions(socket, Permissions::from_mode(0o777)).expect("permissions");
    let folder = folder.to_owned();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let folder = folder.clone();
            std::thread::spawn(move || {
                // A client that is gone is no failure of the application.
                let _ = answer(&connection.expect("a connection"), &folder);
            });
        }
    });
}

fn answer(connection: &UnixStream, folder: &Path) -> io::Result<()> {
    let mut input = BufReader::new(connection);
    let mut length = Vec::new();
    input.read_until(b':', &mut length)?;
    let length = String::from_utf8_lossy(&length[..length.len() - 1]).parse().expect("a netstring");
    let mut head = vec![0; length];
    input.read_exact(&mut head)?;
    input.read_exact(&mut [0])?;
    let mut words = head.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let mut variables = HashMap::new();
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        variables.insert(name, value);
    }
    let value = |name: &str| variables.get(name).map(String::as_str).unwrap_or_default();
    let (path, query) = (value("PATH_INFO"), value("QUERY_STRING"));
    if program::brief(path, query, connection)? {
        return Ok(());
    }
    let body = Body { input, left: value("CONTENT_LENGTH").parse().expect("a length") };
    program::take_upload(path, query, Exchange { body, output: connection }, folder)
}

/// A body and the stream for the answer.
struct Exchange<'c> {
    body: Body<'c>,
    output: &'c UnixStream,
}

/// A body that is complete at its declared length, not at the end of the connection.
struct Body<'c> {
    input: BufReader<&'c UnixStream>,
    left: usize,
}

impl Read for Exchange<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = buffer.len().min(self.body.left);
        if len == 0 {
            return Ok(0);
        }
        let read = self.body.input.read(&mut buffer[..len])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.body.left -= read;
        Ok(read)
    }
}

impl Write for Exchange<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
