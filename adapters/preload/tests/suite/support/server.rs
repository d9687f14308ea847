//! The server's part: requests with and without offers on one FastCGI connection, and their results.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use baton_fcgi::offer::{self, Offer, Ring, Transport};
use baton_fcgi::record::HEADER_BYTES;
use baton_fcgi::response::{Part, ProtocolStatus, ResponseReader};
use baton_fcgi::{Answered, Rest, params, request};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use super::{Client, GENEROUS, Response, read_some};

/// A FastCGI connection.
pub(crate) struct Server {
    pub(crate) stream: UnixStream,
    reader: ResponseReader,
    /// Input beyond the last part.
    ahead: Vec<u8>,
    region: Option<Region>,
}

/// A shared region.
struct Region {
    file: File,
    size: u32,
    /// Where the next answer begins.
    at: u32,
    /// The number of announced slices.
    slices: usize,
}

/// One request.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) script: String,
    pub(crate) method: &'static str,
    pub(crate) query: String,
    pub(crate) body: Vec<u8>,
    pub(crate) more_params: Vec<(String, String)>,
    pub(crate) keep_connection: bool,
    pub(crate) request_id: u16,
}

/// An offer of the client's socket, as the server would write it.
#[derive(Clone, Copy)]
pub(crate) struct Offered {
    pub(crate) minor: u8,
    pub(crate) keep: bool,
    pub(crate) patience_ms: u32,
}

/// The application's records about a request.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) answered: Option<Answered>,
    pub(crate) rest: Option<Rest>,
    /// It has said that bodies may come by reference.
    pub(crate) takes_bodies: bool,
    /// Bytes of the pool that it has returned before its end.
    pub(crate) freed: usize,
    /// Application status and protocol status; None: the connection ended without.
    pub(crate) end: Option<(u32, ProtocolStatus)>,
}

/// To clients that speak HTTP/1.1 and may go on.
pub(crate) const MODERN: Offered = Offered { minor: 1, keep: true, patience_ms: 10_000 };

/// Response fields that every offer of these tests has.
pub(crate) const FIELDS: &str = "Date: Fri, 20 Nov 2026 12:00:00 GMT\r\nServer: baton\r\n";

impl Request {
    /// `GET`, on a connection that is kept.
    pub(crate) fn get(script: impl Into<String>) -> Self {
        Self {
            script: script.into(),
            method: "GET",
            query: String::new(),
            body: Vec::new(),
            more_params: Vec::new(),
            keep_connection: true,
            request_id: 1,
        }
    }

    pub(crate) fn query(self, query: impl Into<String>) -> Self {
        Self { query: query.into(), ..self }
    }

    pub(crate) fn post(self, content_type: &str, body: Vec<u8>) -> Self {
        let this = Self { method: "POST", body, ..self };
        let length = this.body.len().to_string();
        this.param("CONTENT_TYPE", content_type).param("CONTENT_LENGTH", &length)
    }

    pub(crate) fn param(mut self, name: &str, value: &str) -> Self {
        self.more_params.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn push_params(&self, block: &mut Vec<u8>) {
        let name = format!("/{}", self.script.rsplit('/').next().unwrap_or_default());
        let mut push = |name: &str, value: &str| params::push(block, name.as_bytes(), value.as_bytes());
        push("SCRIPT_FILENAME", &self.script);
        push("SCRIPT_NAME", &name);
        push("REQUEST_URI", &format!("{name}?{}", self.query));
        push("REQUEST_METHOD", self.method);
        push("QUERY_STRING", &self.query);
        push("SERVER_PROTOCOL", "HTTP/1.1");
        push("GATEWAY_INTERFACE", "CGI/1.1");
        for (name, value) in &self.more_params {
            push(name, value);
        }
    }
}

impl Server {
    pub(crate) fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("the application listens");
        stream.set_read_timeout(Some(GENEROUS)).expect("a limit");
        Self { stream, reader: ResponseReader::new(1), ahead: Vec::new(), region: None }
    }

    /// Sends the request with an offer of a client's socket, and has the client read the response meanwhile. The
    /// server's end is closed afterwards, unless the connection may go on: then it is returned.
    pub(crate) fn answer(&mut self, request: &Request, offered: Offered) -> (Outcome, Response) {
        let (mut client, server_end) = Client::connect();
        std::thread::scope(|scope| {
            let reads = scope.spawn(|| client.read_response(request.method));
            let outcome = self.offer(request, offered, &server_end);
            drop(server_end);
            (outcome, reads.join().expect("a response"))
        })
    }

    /// The same for a request without a response to the client.
    pub(crate) fn answer_none(&mut self, request: &Request, offered: Offered) -> Outcome {
        let (mut client, server_end) = Client::connect();
        let outcome = self.offer(request, offered, &server_end);
        drop(server_end);
        assert_eq!(client.read_to_end(), b"");
        outcome
    }

    /// The same, without reading anything from the client.
    pub(crate) fn offer(&mut self, request: &Request, offered: Offered, client: impl AsFd) -> Outcome {
        self.send_offer(request, offered, client);
        self.read_outcome(request)
    }

    /// Sends the request with an offer.
    pub(crate) fn send_offer(&mut self, request: &Request, offered: Offered, client: impl AsFd) {
        let client_to_be =
            offer::Client { minor: offered.minor, keep: offered.keep, head: request.method == "HEAD" };
        let mut block = Vec::new();
        Offer {
            transport: Transport::PassFd(client_to_be),
            fds: 1,
            bodies: offer::Bodies::default(),
            patience_ms: offered.patience_ms,
            holds: false,
            fields: FIELDS.as_bytes(),
        }
        .push(&mut block);
        request.push_params(&mut block);
        self.send_blocks(request, &[&block], &[client.as_fd()]);
    }

    /// Sends the request without an offer and reads the answer.
    pub(crate) fn plain(&mut self, request: &Request) -> Outcome {
        let mut block = Vec::new();
        request.push_params(&mut block);
        self.send_blocks(request, &[&block], &[]);
        self.read_outcome(request)
    }

    /// Sends the request with these blocks of parameters, a record for each, and these descriptors with its first byte.
    pub(crate) fn send_blocks(
        &mut self,
        request: &Request,
        blocks: &[&[u8]],
        descriptors: &[BorrowedFd<'_>],
    ) {
        let mut bytes = Vec::new();
        request::push_begin(&mut bytes, request.request_id, request.keep_connection);
        for block in blocks {
            let end = bytes.len() + HEADER_BYTES + block.len();
            request::push_params(&mut bytes, request.request_id, block);
            // Without the empty record, which ends the last one alone.
            bytes.truncate(end);
        }
        request::push_params(&mut bytes, request.request_id, &[]);
        request::push_stdin(&mut bytes, request.request_id, &request.body);
        request::push_stdin_end(&mut bytes, request.request_id);
        self.send_with(&bytes, descriptors);
    }

    /// Sends bytes, and these descriptors with the first.
    pub(crate) fn send_with(&mut self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
        }
        let sent =
            rustix::net::sendmsg(&self.stream, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL);
        self.stream.write_all(&bytes[sent.expect("sent")..]).expect("sent");
    }

    /// Whether the application has closed the connection; nothing is read.
    pub(crate) fn has_ended(&self) -> bool {
        let mut polled = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        rustix::event::poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the application takes it");
    }

    /// Reads to the end of the request, or of the connection.
    pub(crate) fn read_outcome(&mut self, request: &Request) -> Outcome {
        self.reader.begin(request.request_id);
        let mut outcome = Outcome::default();
        while outcome.end.is_none() && self.read_part(&mut outcome) {}
        outcome
    }

    /// Reads one part. False at the end of the connection.
    pub(crate) fn read_part(&mut self, outcome: &mut Outcome) -> bool {
        loop {
            let input = std::mem::take(&mut self.ahead);
            let (consumed, part) = self.reader.read(&input).expect("FastCGI");
            match &part {
                Part::NeedMore | Part::UnknownType(_) => {}
                Part::Stdout(range) => outcome.stdout.extend_from_slice(&input[range.clone()]),
                Part::Stderr(range) => outcome.stderr.extend_from_slice(&input[range.clone()]),
                Part::Answered(answered) => outcome.answered = Some(*answered),
                Part::Rest(rest) => outcome.rest = Some(*rest),
                Part::End { app_status, protocol_status } => {
                    outcome.end = Some((*app_status, *protocol_status));
                }
                Part::Slices => self.take_slices(outcome),
                Part::TakesBodies => outcome.takes_bodies = true,
                Part::Freed(bytes) => outcome.freed += *bytes as usize,
                other => panic!("unexpected: {other:?}"),
            }
            self.ahead = input[consumed..].to_vec();
            if part != Part::NeedMore {
                return true;
            }
            let mut buffer = vec![0; 64 << 10];
            match read_some(&mut self.stream, &mut buffer) {
                Ok(0) => return false,
                Ok(read) => self.ahead.extend_from_slice(&buffer[..read]),
                // A process that is killed before it has read everything resets its connections.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return false,
                Err(error) => panic!("no answer in time: {error}"),
            }
        }
    }

    /// Sends the request with an offer of a region of `size` bytes, the same one for all requests of the connection,
    /// and reads the answer. Returns its number of slices, too.
    pub(crate) fn answer_shared(&mut self, request: &Request, size: u32) -> (Outcome, usize) {
        let is_new = self.region.is_none();
        let region = self.region.get_or_insert_with(|| Region::new(size));
        region.slices = 0;
        let mut block = Vec::new();
        let transport = Transport::Shm(Ring { size, at: region.at, free: size });
        Offer {
            transport,
            fds: usize::from(is_new),
            bodies: offer::Bodies::default(),
            patience_ms: 0,
            holds: false,
            fields: b"",
        }
        .push(&mut block);
        request.push_params(&mut block);
        let file = region.file.try_clone().expect("a file");
        let descriptors = [file.as_fd()];
        self.send_blocks(request, &[&block], if is_new { &descriptors } else { &[] });
        let outcome = self.read_outcome(request);
        (outcome, self.region.as_ref().map_or(0, |region| region.slices))
    }

    /// Copies the slices' bytes, and frees them.
    fn take_slices(&mut self, outcome: &mut Outcome) {
        let region = self.region.as_mut().expect("a region was offered");
        let mut freed = 0;
        for slice in self.reader.slices() {
            assert!(slice.is_within(region.size.into()), "{slice:?}");
            let mut bytes = vec![0; slice.len as usize];
            region.file.read_exact_at(&mut bytes, slice.offset.into()).expect("within the file");
            outcome.stdout.extend_from_slice(&bytes);
            region.at = (slice.offset + slice.len) % region.size;
            region.slices += 1;
            freed += slice.len;
        }
        let mut record = Vec::new();
        request::push_freed(&mut record, 1, freed);
        self.write(&record);
    }

    /// Asks for the application's values, until it closes the connection or `answers` values have arrived.
    pub(crate) fn ask(&mut self, names: &[&str], answers: usize) -> Vec<(String, String)> {
        let mut question = Vec::new();
        request::push_get_values(&mut question, names);
        self.write(&question);
        let mut reader = ResponseReader::new(baton_fcgi::record::MANAGEMENT_ID);
        let mut values = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        while values.len() < answers {
            let read = read_some(&mut self.stream, &mut buffer).unwrap_or(0);
            let mut input = &buffer[..read];
            if read == 0 {
                break;
            }
            loop {
                let (consumed, part) = reader.read(input).expect("FastCGI");
                input = &input[consumed..];
                match part {
                    Part::Values => values.extend(reader.values().map(|pair| {
                        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                        pair.map(|(name, value)| (text(name), text(value))).expect("pairs")
                    })),
                    Part::NeedMore => break,
                    other => panic!("unexpected: {other:?}"),
                }
            }
        }
        values
    }
}

impl Region {
    fn new(size: u32) -> Self {
        use rustix::fs::{MemfdFlags, SealFlags};
        let file = rustix::fs::memfd_create("region", MemfdFlags::ALLOW_SEALING).expect("a memory file");
        rustix::fs::ftruncate(&file, size.into()).expect("a size");
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).expect("sealed");
        Self { file: file.into(), size, at: 0, slices: 0 }
    }
}

impl Outcome {
    /// The body that the application wrote.
    pub(crate) fn body(&self) -> &[u8] {
        let end = self.stdout.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head");
        &self.stdout[end + 4..]
    }

    /// The answer, which must be complete and the application's only record.
    pub(crate) fn complete(&self) -> Answered {
        assert_eq!(self.end, Some((0, ProtocolStatus::RequestComplete)), "{self:?}");
        assert!(self.stdout.is_empty() && self.rest.is_none(), "{self:?}");
        let answered = self.answered.unwrap_or_else(|| panic!("not answered: {self:?}"));
        assert!(answered.complete, "{answered:?}");
        answered
    }
}
