//! One reply over a kept connection, with its body: for clients that look at what they get. Loads use `crates/load`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use anyhow::{Context, Result, ensure};

/// A reply with `Content-Length`.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) location: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// Asks for a path, and waits for all of the reply.
    ///
    /// # Errors
    /// If the connection ends, or the reply has no length.
    pub(crate) fn get(stream: &mut BufReader<TcpStream>, host: &str, path: &str) -> Result<Self> {
        stream.get_mut().write_all(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())?;
        let mut line = String::new();
        let mut next = |line: &mut String| -> Result<()> {
            line.clear();
            ensure!(stream.read_line(line)? > 0, "the server has closed the connection");
            Ok(())
        };
        next(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok()).context("no status")?;
        let (mut length, mut location) = (None, None);
        while line != "\r\n" {
            next(&mut line)?;
            match line.split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = Some(value.trim().parse()?);
                }
                Some((name, value)) if name.eq_ignore_ascii_case("location") => {
                    location = Some(value.trim().to_owned());
                }
                _ => {}
            }
        }
        let mut body = vec![0; length.context("no length")?];
        stream.read_exact(&mut body)?;
        Ok(Self { status, location, body })
    }
}
