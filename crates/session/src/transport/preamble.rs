//! What a load balancer says of a connection before the client's own bytes: the PROXY protocol.

use baton_http::{Announced, BadProxyHeader, PROXY_HEADER_BYTES_MAX, read_proxy_header};
use rustix::io::Errno;

use super::byte_stream::ByteStream;

/// A header that has not arrived completely.
#[derive(Debug, Default)]
pub(super) struct Preamble {
    input: Vec<u8>,
}

/// What a read of the header comes to.
#[derive(Debug)]
pub(super) enum Read {
    /// More has to come.
    More,
    /// All of it is there: what it says, and bytes of the client that came with it.
    Whole(Announced, Vec<u8>),
    /// It is none.
    Bad(BadProxyHeader),
    /// The connection has ended.
    Ended,
}

impl Preamble {
    /// Reads what has arrived.
    pub(super) fn advance(
        &mut self,
        stream: &dyn ByteStream,
        readable: &mut bool,
        end_announced: bool,
    ) -> Read {
        let mut bytes = [0; READ_BYTES];
        loop {
            match stream.receive_and_note(&mut bytes, readable, end_announced) {
                Ok(0) => return Read::Ended,
                Ok(count) => self.input.extend_from_slice(&bytes[..count]),
                Err(Errno::AGAIN) => return Read::More,
                Err(_) => return Read::Ended,
            }
            match read_proxy_header(&self.input) {
                Ok(Some((announced, len))) => {
                    return Read::Whole(announced, self.input.split_off(len));
                }
                Ok(None) => {}
                Err(bad) => return Read::Bad(bad),
            }
        }
    }
}

/// Read at once: a header and a request of a browser. An incomplete header is shorter than what the parser takes.
const READ_BYTES: usize = 4 * 1024;

const _: () = assert!(PROXY_HEADER_BYTES_MAX <= READ_BYTES);
