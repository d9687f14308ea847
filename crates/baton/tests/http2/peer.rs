//! A client of HTTP/2 that sends any frames: whole ones, broken ones, thousands of them.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use baton_http::h2::hpack::Decoder;

use crate::common::server::PATIENCE;
use crate::common::take_front;

/// A connection, after the exchange of SETTINGS.
pub(crate) struct Peer {
    stream: TcpStream,
    /// Bytes that came behind the last frame.
    ahead: Vec<u8>,
    decoder: Decoder,
    next_stream: u32,
}

/// A frame (RFC 9113 section 4.1).
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// How a stream went on and ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// The code of RST_STREAM, which may follow a complete response.
    pub(crate) reset: Option<u32>,
}

impl Peer {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::connect_with(address, &[])
    }

    /// With these settings: identifier and value.
    pub(crate) fn connect_with(address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("an option");
        let mut peer = Self { stream, ahead: Vec::new(), decoder: Decoder::new(), next_stream: 1 };
        peer.send([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings_frame(settings)[..]].concat());
        let first = peer.next().expect("the server's SETTINGS");
        assert_eq!((first.kind, first.flags, first.stream), (SETTINGS, 0, 0));
        peer.send(frame(SETTINGS, ACK, 0, b""));
        peer
    }

    /// The socket itself.
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends bytes, as far as the server takes them: it may have ended the connection.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        send(&self.stream, bytes.as_ref());
    }

    /// Sends the bytes again and again, while it reads, until the server ends the connection. Returns the code of GOAWAY.
    pub(crate) fn flood(&mut self, mut bytes: impl FnMut() -> Vec<u8> + Send) -> u32 {
        let writer = self.stream.try_clone().expect("a descriptor");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for _ in 0..FLOOD_MAX {
                    if !send(&writer, &bytes()) {
                        return;
                    }
                }
                // A server that endures it all need not be waited for. It may be gone by now.
                let _ = writer.shutdown(Shutdown::Write);
            });
            self.go_away().expect("a GOAWAY before the end of the flood")
        })
    }

    /// The number of the next stream that this side opens.
    pub(crate) fn open(&mut self) -> u32 {
        self.next_stream += 2;
        self.next_stream - 2
    }

    /// Requests a path. Returns the stream.
    pub(crate) fn get(&mut self, path: &str) -> u32 {
        let stream = self.open();
        self.send(request(stream, "GET", path, END_STREAM));
        stream
    }

    /// The next frame; `None`: the connection has ended.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        while self.ahead.len() < HEAD_BYTES {
            self.fill()?;
        }
        let len =
            usize::from(self.ahead[0]) << 16 | usize::from(self.ahead[1]) << 8 | usize::from(self.ahead[2]);
        while self.ahead.len() < HEAD_BYTES + len {
            self.fill()?;
        }
        let bytes = take_front(&mut self.ahead, HEAD_BYTES + len);
        let stream = u32::from_be_bytes([bytes[5], bytes[6], bytes[7], bytes[8]]) & 0x7fff_ffff;
        Some(Frame { kind: bytes[3], flags: bytes[4], stream, payload: bytes[HEAD_BYTES..].to_vec() })
    }

    /// The code of GOAWAY, for which other frames are skipped; `None`: the connection ended without one.
    pub(crate) fn go_away(&mut self) -> Option<u32> {
        loop {
            let Frame { kind, payload, .. } = self.next()?;
            if kind == GOAWAY {
                return Some(number(&payload[4..]));
            }
        }
    }

    /// Reads the response on a stream, and gives credit for what comes. Fails if another stream comes in between.
    pub(crate) fn answer(&mut self, stream: u32) -> Answer {
        let mut answers = self.answers(&[stream]);
        answers.remove(0)
    }

    /// Reads the responses on several streams, in any order.
    pub(crate) fn answers(&mut self, streams: &[u32]) -> Vec<Answer> {
        let mut answers = vec![Answer::default(); streams.len()];
        let mut open = streams.len();
        while open > 0 {
            let frame = self.next().expect("no end of the connection before that of the streams");
            if let Some(index) = streams.iter().position(|stream| *stream == frame.stream) {
                open -= usize::from(self.take(&frame, &mut answers[index]));
            } else if frame.kind == HEADERS {
                // For the table.
                self.fields(&frame.payload);
            }
            assert_ne!(frame.kind, GOAWAY, "{:?}", String::from_utf8_lossy(&frame.payload));
        }
        answers
    }

    /// Takes a frame of a stream; `true`: the stream is at its end.
    fn take(&mut self, frame: &Frame, answer: &mut Answer) -> bool {
        match frame.kind {
            HEADERS => {
                assert_ne!(frame.flags & END_HEADERS, 0, "heads here are short");
                let fields = self.fields(&frame.payload);
                let status: u16 = fields[0].1.parse().expect("a status");
                assert_eq!(fields[0].0, ":status");
                if status >= 200 {
                    (answer.status, answer.fields) = (status, fields[1..].to_vec());
                }
            }
            DATA => {
                answer.body.extend_from_slice(&frame.payload);
                let len = frame.payload.len() as u32;
                if len > 0 {
                    self.send([window_update(0, len), window_update(frame.stream, len)].concat());
                }
            }
            RST_STREAM => {
                answer.reset = Some(number(&frame.payload));
                return true;
            }
            _ => {}
        }
        matches!(frame.kind, HEADERS | DATA) && frame.flags & END_STREAM != 0
    }

    fn fields(&mut self, block: &[u8]) -> Vec<(String, String)> {
        let (mut scratch, mut list) = (Vec::new(), Vec::new());
        let mut fields = self.decoder.fields(block, &mut scratch);
        while let Some(field) = fields.next_field().expect("HPACK") {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
            list.push((text(field.name), text(field.value)));
        }
        list
    }

    /// Reads once; `None`: this is the end.
    fn fill(&mut self) -> Option<()> {
        let mut bytes = [0; 65_536];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return None,
                Ok(count) => {
                    self.ahead.extend_from_slice(&bytes[..count]);
                    return Some(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

impl Answer {
    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| &**value)
    }
}

/// Writes; `false`: the server takes nothing more.
fn send(mut stream: &TcpStream, bytes: &[u8]) -> bool {
    match stream.write_all(bytes) {
        Ok(()) => true,
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => false,
        Err(error) => panic!("{error}"),
    }
}

/// A frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// SETTINGS with these pairs.
pub(crate) fn settings_frame(settings: &[(u16, u32)]) -> Vec<u8> {
    let pairs =
        settings.iter().flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat());
    frame(SETTINGS, 0, 0, &pairs.collect::<Vec<_>>())
}

pub(crate) fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

pub(crate) fn rst_stream(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())
}

/// HEADERS of a request, complete.
pub(crate) fn request(stream: u32, method: &str, path: &str, flags: u8) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | flags, stream, &block(method, path, &[]))
}

/// The header block of a request, without a table.
pub(crate) fn block(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    let usual = [(":method", method), (":scheme", "http"), (":authority", "localhost"), (":path", path)];
    for (name, value) in usual.iter().chain(more) {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).ok().filter(|len| *len < 127).expect("a short string"));
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

fn number(payload: &[u8]) -> u32 {
    u32::from_be_bytes(*payload.first_chunk().expect("four bytes"))
}

/// Rounds of a flood: more than any bound. A server that endures them has none.
const FLOOD_MAX: usize = 20_000;

const HEAD_BYTES: usize = 9;

pub(crate) const DATA: u8 = 0x0;
pub(crate) const HEADERS: u8 = 0x1;
pub(crate) const PRIORITY: u8 = 0x2;
pub(crate) const RST_STREAM: u8 = 0x3;
pub(crate) const SETTINGS: u8 = 0x4;
pub(crate) const PING: u8 = 0x6;
pub(crate) const GOAWAY: u8 = 0x7;
pub(crate) const WINDOW_UPDATE: u8 = 0x8;
pub(crate) const CONTINUATION: u8 = 0x9;
pub(crate) const PRIORITY_UPDATE: u8 = 0x10;

pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const ACK: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;

/// SETTINGS_INITIAL_WINDOW_SIZE.
pub(crate) const INITIAL_WINDOW: u16 = 0x4;

pub(crate) const CANCEL: u32 = 0x8;
pub(crate) const REFUSED_STREAM: u32 = 0x7;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 0xb;
