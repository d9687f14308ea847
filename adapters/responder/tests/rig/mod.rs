//! A scripted server: sends requests over a FastCGI connection, collects the answers, and has a client on a TCP
//! connection whose other end it passes on. It reads a shared region like the server, slice by slice.

#![allow(dead_code, reason = "each test program uses its part of the rig")]

use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use baton_fcgi::offer::{self, Offer, Ring, Transport};
use baton_fcgi::response::{Part, ResponseReader};
use baton_fcgi::{Answered, Declined, Rest, params, request};
use baton_responder::{Request, Responder};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tempfile::TempDir;

/// Nothing that a test waits for takes so long.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// The id of all requests.
pub(crate) const ID: u16 = 1;

/// The fields that offers bring.
pub(crate) const FIELDS: &str = "Date: Fri, 20 Nov 2026 12:00:00 GMT\r\nServer: baton\r\n";

/// An application that answers all requests like this, on a thread of its own: where to reach it, as long as the
/// directory lives.
pub(crate) fn application(answer: impl Fn(&mut Request<'_>) + Send + 'static) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("application");
    let mut responder = Responder::bind(&path).unwrap();
    std::thread::spawn(move || {
        while let Ok(mut request) = responder.next_request() {
            answer(&mut request);
        }
    });
    (dir, path)
}

/// The server's end of a FastCGI connection.
pub(crate) struct Server {
    pub(crate) socket: UnixStream,
    /// Whether requests keep the connection.
    pub(crate) keeps: bool,
    reader: ResponseReader,
    input: Vec<u8>,
    /// The shared region, and its state for the next offer.
    pub(crate) region: Option<Region>,
}

/// A shared region.
pub(crate) struct Region {
    pub(crate) file: File,
    pub(crate) bytes: u32,
    /// Where the application writes next.
    pub(crate) at: u32,
    /// Whether it has been passed on.
    pub(crate) is_known: bool,
    /// The number of records that report freed bytes; 0 frees none.
    pub(crate) frees_in: u32,
    /// How many slices were announced, and the most bytes of them in one.
    pub(crate) slices: usize,
}

impl Region {
    /// A sealed memory file.
    pub(crate) fn new(bytes: u32) -> Self {
        use rustix::fs::{MemfdFlags, SealFlags};
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(rustix::fs::memfd_create("region", flags).unwrap());
        file.set_len(bytes.into()).unwrap();
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).unwrap();
        Self { file, bytes, at: 0, is_known: false, frees_in: 1, slices: 0 }
    }
}

/// The result of a request.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// Standard output, in order, through records and slices, before the rest was handed back.
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) answered: Option<Answered>,
    pub(crate) rest: Option<Rest>,
    pub(crate) declined: Option<Declined>,
    /// Whether bodies may come by reference, and bytes of them that were returned.
    pub(crate) takes_bodies: bool,
    pub(crate) freed: u32,
    /// Standard output after `rest`.
    pub(crate) wire: Vec<u8>,
    /// The application's exit status; `None` if the connection ended without.
    pub(crate) end: Option<u32>,
    /// Bytes that came in records, not in slices.
    pub(crate) stdout_record_bytes: usize,
}

impl Server {
    pub(crate) fn new(socket: UnixStream) -> Self {
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self { socket, keeps: true, reader: ResponseReader::new(ID), input: Vec::new(), region: None }
    }

    /// Connects to an application.
    pub(crate) fn connect(path: &std::path::Path) -> Self {
        let deadline = std::time::Instant::now() + TIMEOUT;
        loop {
            match UnixStream::connect(path) {
                Ok(socket) => return Self::new(socket),
                Err(error) if std::time::Instant::now() > deadline => panic!("{}: {error}", path.display()),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Asks without an offer.
    pub(crate) fn ask(&mut self, variables: &[(&str, &str)], body: &[u8]) {
        let block = block(variables);
        self.send(&block, body, None);
    }

    /// Asks for an answer on the client's socket.
    pub(crate) fn pass(
        &mut self,
        client: &Client,
        about: offer::Client,
        patience_ms: u32,
        variables: &[(&str, &str)],
        body: &[u8],
    ) {
        self.pass_with(client, about, patience_ms, FIELDS, variables, body);
    }

    /// The same with these edits and fields in the offer.
    pub(crate) fn pass_with(
        &mut self,
        client: &Client,
        about: offer::Client,
        patience_ms: u32,
        fields: &str,
        variables: &[(&str, &str)],
        body: &[u8],
    ) {
        let mut block_with_offer = Vec::new();
        let transport = Transport::PassFd(about);
        Offer {
            transport,
            fds: 1,
            bodies: offer::Bodies::default(),
            patience_ms,
            holds: false,
            fields: fields.as_bytes(),
        }
        .push(&mut block_with_offer);
        block_with_offer.extend_from_slice(&block(variables));
        self.send(&block_with_offer, body, Some(client.far.as_fd()));
    }

    /// Asks for an answer on the client's socket, and keeps the body for later.
    pub(crate) fn pass_without_body(
        &mut self,
        client: &Client,
        about: offer::Client,
        variables: &[(&str, &str)],
    ) {
        let mut block_with_offer = Vec::new();
        let transport = Transport::PassFd(about);
        Offer {
            transport,
            fds: 1,
            bodies: offer::Bodies::default(),
            patience_ms: 60_000,
            holds: false,
            fields: b"",
        }
        .push(&mut block_with_offer);
        block_with_offer.extend_from_slice(&block(variables));
        let mut records = Vec::new();
        request::push_begin(&mut records, ID, self.keeps);
        request::push_params(&mut records, ID, &block_with_offer);
        self.send_records(&records, Some(client.far.as_fd()));
    }

    /// Sends some of the body.
    pub(crate) fn send_body(&mut self, body: &[u8]) {
        let mut records = Vec::new();
        request::push_stdin(&mut records, ID, body);
        self.socket.write_all(&records).unwrap();
    }

    /// Says that the body is complete.
    pub(crate) fn end_body(&mut self) {
        let mut records = Vec::new();
        request::push_stdin_end(&mut records, ID);
        self.socket.write_all(&records).unwrap();
    }

    /// Asks for an answer through the region.
    pub(crate) fn share(&mut self, free: u32, variables: &[(&str, &str)], body: &[u8]) {
        let region = self.region.as_mut().unwrap();
        let mut block_with_offer = Vec::new();
        let transport = Transport::Shm(Ring { size: region.bytes, at: region.at, free });
        let first = !std::mem::replace(&mut region.is_known, true);
        Offer {
            transport,
            fds: first.into(),
            bodies: offer::Bodies::default(),
            patience_ms: 0,
            holds: false,
            fields: b"",
        }
        .push(&mut block_with_offer);
        block_with_offer.extend_from_slice(&block(variables));
        let file = region.file.try_clone().unwrap();
        self.send(&block_with_offer, body, first.then_some(file.as_fd()));
    }

    /// Begins a request whose offer brings descriptors for its body. `body`: the records of it, which may be any.
    pub(crate) fn lend(
        &mut self,
        offer: &str,
        variables: &[(&str, &str)],
        passed: &[BorrowedFd<'_>],
        body: &[u8],
    ) {
        let mut records = Vec::new();
        request::push_begin(&mut records, ID, self.keeps);
        let variables = [&[(offer::NAME, offer)][..], variables].concat();
        request::push_params(&mut records, ID, &block(&variables));
        records.extend_from_slice(body);
        self.send_with(&records, passed);
    }

    /// Asks with an offer that may be any text.
    pub(crate) fn offer(&mut self, offer: &str, client: Option<&Client>) {
        self.send(&block(&[(offer::NAME, offer)]), b"", client.map(|client| client.far.as_fd()));
    }

    fn send(&mut self, block: &[u8], body: &[u8], passed: Option<BorrowedFd<'_>>) {
        let mut records = Vec::new();
        request::push_begin(&mut records, ID, self.keeps);
        request::push_params(&mut records, ID, block);
        if !body.is_empty() {
            request::push_stdin(&mut records, ID, body);
        }
        request::push_stdin_end(&mut records, ID);
        self.send_records(&records, passed);
    }

    fn send_records(&mut self, records: &[u8], passed: Option<BorrowedFd<'_>>) {
        self.send_with(records, passed.as_slice());
    }

    fn send_with(&mut self, records: &[u8], passed: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !passed.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(passed));
        }
        let sent =
            sendmsg(&self.socket, &[IoSlice::new(records)], &mut control, SendFlags::NOSIGNAL).unwrap();
        self.socket.write_all(&records[sent..]).unwrap();
        self.reader.begin(ID);
    }

    /// Collects records up to the end of the request, or of the connection.
    pub(crate) fn reply(&mut self) -> Reply {
        let mut reply = Reply::default();
        self.collect(&mut reply, |reply| reply.end.is_some());
        reply
    }

    /// Collects records until there are enough, or the connection ends.
    pub(crate) fn collect(&mut self, reply: &mut Reply, is_enough: impl Fn(&Reply) -> bool) {
        while !is_enough(reply) {
            let (consumed, part) = self.reader.read(&self.input).unwrap();
            match part {
                Part::NeedMore => {
                    let mut more = [0; 1 << 16];
                    let read = match self.socket.read(&mut more) {
                        // The application closed with unread input.
                        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
                        read => read.unwrap(),
                    };
                    self.input = more[..read].to_vec();
                    if read == 0 {
                        return;
                    }
                    continue;
                }
                Part::Stdout(range) if reply.rest.is_some() => reply.wire.extend(&self.input[range]),
                Part::Stdout(range) => {
                    reply.stdout_record_bytes += range.len();
                    reply.stdout.extend(&self.input[range]);
                }
                Part::Stderr(range) => reply.stderr.extend(&self.input[range]),
                Part::Slices => self.take_slices(reply),
                Part::TakesBodies => reply.takes_bodies = true,
                Part::Freed(bytes) => reply.freed += bytes,
                Part::Answered(answered) => reply.answered = Some(answered),
                Part::Rest(rest) => reply.rest = Some(rest),
                Part::Declined(why) => reply.declined = Some(why),
                Part::End { app_status, .. } => reply.end = Some(app_status),
                Part::Values | Part::UnknownType(_) => {}
            }
            self.input.drain(..consumed);
        }
    }

    /// Whether the application has closed the connection, for which this waits.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.input.is_empty() && matches!(self.socket.read(&mut [0]), Ok(0))
    }

    /// Expects the answer to a request that the test has sent itself.
    pub(crate) fn expect(&mut self) {
        self.reader.begin(ID);
    }

    /// Frees bytes of the region.
    pub(crate) fn free(&mut self, bytes: u32) {
        let mut records = Vec::new();
        request::push_freed(&mut records, ID, bytes);
        self.socket.write_all(&records).unwrap();
    }

    /// Asks for the connection of the client that was passed on.
    pub(crate) fn ask_back(&mut self) {
        let mut records = Vec::new();
        request::push_give_back(&mut records, ID);
        self.socket.write_all(&records).unwrap();
    }

    fn take_slices(&mut self, reply: &mut Reply) {
        let region = self.region.as_mut().unwrap();
        let mut bytes = 0;
        for slice in self.reader.slices() {
            assert!(slice.is_within(region.bytes.into()), "{slice:?} of {} bytes", region.bytes);
            assert_eq!(slice.offset, region.at, "slices follow each other");
            let start = reply.stdout.len();
            reply.stdout.resize(start + slice.len as usize, 0);
            region.file.read_exact_at(&mut reply.stdout[start..], slice.offset.into()).unwrap();
            region.at = (slice.offset + slice.len) % region.bytes;
            region.slices += 1;
            bytes += slice.len;
        }
        let pieces = region.frees_in;
        let mut records = Vec::new();
        for piece in 0..pieces {
            let share = bytes / pieces + u32::from(piece < bytes % pieces);
            request::push_freed(&mut records, ID, share);
        }
        // An application that closes the connection with its answer may have done so already.
        let _ = self.socket.write_all(&records);
    }
}

fn block(variables: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in variables {
        params::push(&mut block, name.as_bytes(), value.as_bytes());
    }
    block
}

/// A client: its own end of a connection, and the server's, which can be passed on.
pub(crate) struct Client {
    pub(crate) near: TcpStream,
    pub(crate) far: TcpStream,
}

impl Client {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        near.set_read_timeout(Some(TIMEOUT)).unwrap();
        far.set_nonblocking(true).unwrap();
        Self { near, far }
    }

    /// One whose connection holds little: a large response does not fit into it.
    pub(crate) fn narrow() -> Self {
        let client = Self::new();
        rustix::net::sockopt::set_socket_send_buffer_size(&client.far, 16 << 10).unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size(&client.near, 16 << 10).unwrap();
        client
    }

    /// All that the client gets, once the server has closed its end, which must be the only copy.
    pub(crate) fn received(self) -> Vec<u8> {
        let Self { mut near, far } = self;
        drop(far);
        let mut received = Vec::new();
        near.read_to_end(&mut received).expect("the application has closed the client's socket");
        received
    }
}

/// The offer for an HTTP/1.1 client.
pub(crate) const HTTP_1_1: offer::Client = offer::Client { minor: 1, keep: true, head: false };

/// The offer for an HTTP/1.0 client that wants to keep the connection.
pub(crate) const HTTP_1_0: offer::Client = offer::Client { minor: 0, keep: true, head: false };

/// Splits a response into its head, blank line included, and body.
pub(crate) fn split(response: &[u8]) -> (String, Vec<u8>) {
    let end = response.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head") + 4;
    (String::from_utf8(response[..end].to_vec()).unwrap(), response[end..].to_vec())
}

/// The content of a chunked body, which must end with its last chunk.
pub(crate) fn unchunk(mut body: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    loop {
        let line = body.windows(2).position(|bytes| bytes == b"\r\n").expect("the length of a chunk");
        let len = usize::from_str_radix(std::str::from_utf8(&body[..line]).unwrap(), 16).unwrap();
        let (chunk, rest) = body[line + 2..].split_at(len);
        content.extend_from_slice(chunk);
        body = rest.strip_prefix(b"\r\n").expect("the end of a chunk");
        if len == 0 {
            assert!(body.is_empty(), "nothing follows the last chunk");
            return content;
        }
    }
}

/// Text of a length whose parts all differ.
pub(crate) fn text(bytes: usize) -> Vec<u8> {
    (0..).flat_map(|line: u32| format!("{line:07} of many lines\n").into_bytes()).take(bytes).collect()
}
