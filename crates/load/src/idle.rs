//! Idle connections: each makes one request and is silent from then on, as most kept connections of a real server are.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::reply::{BodyLength, HEAD_BYTES_MAX, ReplyHead};
use super::targets::LoadRequest;

/// Opens `count` connections and lets each make the request.
///
/// # Errors
/// If the server refuses one, does not answer within five seconds, or does not keep the connection.
pub(super) fn open(address: SocketAddr, count: usize, request: &LoadRequest) -> Result<Vec<TcpStream>> {
    let open = || -> Result<TcpStream> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        ask(&mut stream, address, request)?;
        Ok(stream)
    };
    let numbered =
        |number: usize| open().with_context(|| format!("idle connection {} of {count}", number + 1));
    (0..count).map(numbered).collect()
}

/// Makes the request to this server, and reads the answer.
///
/// # Errors
/// If the server does not answer, or does not keep the connection.
pub fn ask(stream: &mut (impl Read + Write), address: SocketAddr, request: &LoadRequest) -> Result<()> {
    stream.write_all(&request.wire(&address.to_string(), false))?;
    let mut received = vec![0; HEAD_BYTES_MAX];
    let mut filled = 0;
    let head = loop {
        let looked_at = filled;
        match stream.read(&mut received[filled..])? {
            0 => bail!("the server ended the connection or its head is too long"),
            count => filled += count,
        }
        if let Some(head) = ReplyHead::parse(&received[..filled], looked_at) {
            break head;
        }
    };
    let (BodyLength::Known(length), 200, false) = (head.length, head.status, head.closes) else {
        bail!("the server does not keep the connection (status {})", head.status);
    };
    let rest = length.saturating_sub((filled - head.head_bytes) as u64);
    if std::io::copy(&mut stream.take(rest), &mut std::io::sink())? < rest {
        bail!("the connection ended inside the body");
    }
    Ok(())
}

/// How long a server may take to answer one request.
pub const ANSWER_MAX: Duration = Duration::from_secs(5);
