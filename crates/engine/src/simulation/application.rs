//! An application in the simulation: processes behind a Unix socket that do what a request tells them to.
//!
//! It speaks FastCGI with the application's end of `baton_fcgi`, over real sockets that never block: they belong to
//! this thread alone, so that what they do depends on nothing but the order of events.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use baton_fcgi::application::{self, Part, RequestReader};
use baton_fcgi::params::Params;
use baton_fcgi::response::ProtocolStatus;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::choices::Choices;

/// How an application answers: the word in the query of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// With a head that has the length.
    Whole,
    /// With a head that does not.
    Open,
    /// With a status of its own.
    Missing,
    /// With lines for the error log besides.
    Talking,
    /// With more than the head announces.
    Long,
    /// With less than the head announces.
    Short,
    /// With a part, and then the end of the connection.
    Cut,
    /// The same without a length in the head.
    OpenCut,
    /// With the end of the connection.
    Gone,
    /// Not at all.
    Never,
    /// With a refusal.
    Overloaded,
    /// With bytes that are not FastCGI.
    Nonsense,
    /// With a malformed head.
    NoHead,
    /// Before it has read the body.
    Early,
    /// With a path of the same site.
    Redirect,
}

impl Manner {
    pub(crate) const ALL: [Self; 15] = [
        Self::Whole,
        Self::Open,
        Self::Missing,
        Self::Talking,
        Self::Long,
        Self::Short,
        Self::Cut,
        Self::OpenCut,
        Self::Gone,
        Self::Never,
        Self::Overloaded,
        Self::Nonsense,
        Self::NoHead,
        Self::Early,
        Self::Redirect,
    ];

    /// The status of the client's answer, if that is complete.
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::Whole | Self::Open | Self::Talking | Self::Long | Self::Early | Self::Redirect => 200,
            Self::Missing => 404,
            Self::Overloaded => 503,
            Self::Never => 504,
            Self::Short | Self::Cut | Self::OpenCut | Self::Gone | Self::Nonsense | Self::NoHead => 502,
        }
    }
}

/// The application's answer to a request, which both ends of the simulation compute.
pub(crate) fn content(number: usize, method: &str, body: &[u8], len: usize) -> Vec<u8> {
    let sum = body.iter().fold(0_u32, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let mut content = format!("{number} {method} {} {sum}\n", body.len()).into_bytes();
    let start = content.len();
    content.resize(start + len, 0);
    fastrand::Rng::with_seed(number as u64).fill(&mut content[start..]);
    content
}

/// Where [`Manner::Redirect`] leads to.
pub(crate) const REDIRECTED_TO: &str = "/small.txt";

/// The processes of an application.
#[derive(Debug)]
pub(crate) struct Application {
    listener: UnixListener,
    processes_max: usize,
    /// Bytes that are read or written at a time.
    piece_bytes_max: usize,
    /// Whether processes close idle connections.
    closes_idle: bool,
    processes: Vec<Process>,
}

/// A process with its connection.
#[derive(Debug)]
struct Process {
    stream: UnixStream,
    reader: RequestReader,
    asked: Asked,
    out: Vec<u8>,
    closes: bool,
}

/// A request as far as it has been read.
#[derive(Debug, Default)]
struct Asked {
    id: u16,
    keeps: bool,
    params: Vec<u8>,
    body: Vec<u8>,
    is_answered: bool,
}

impl Application {
    pub(crate) fn listen(path: &Path, choices: &mut Choices) -> Self {
        let _ = std::fs::remove_file(path);
        let listener = UnixListener::bind(path).unwrap();
        listener.set_nonblocking(true).unwrap();
        Self {
            listener,
            processes_max: choices.one(&[1, 2, 8]),
            piece_bytes_max: choices.one(&[1_000, 30_000, 1_000_000]),
            closes_idle: choices.chance(20),
            processes: Vec::new(),
        }
    }

    /// Whether something can be done.
    pub(crate) fn has_work(&self) -> bool {
        let listener =
            (self.processes.len() < self.processes_max).then(|| PollFd::new(&self.listener, PollFlags::IN));
        let mut watched: Vec<_> = listener.into_iter().collect();
        for process in &self.processes {
            let room = if process.out.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            watched.push(PollFd::new(&process.stream, PollFlags::IN | room));
        }
        poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
    }

    /// Does a part of it.
    pub(crate) fn act(&mut self, choices: &mut Choices) {
        while self.processes.len() < self.processes_max {
            let Ok((stream, _)) = self.listener.accept() else { break };
            stream.set_nonblocking(true).unwrap();
            let (reader, asked) = (RequestReader::new(), Asked::default());
            self.processes.push(Process { stream, reader, asked, out: Vec::new(), closes: false });
        }
        let (piece_bytes_max, closes_idle) = (self.piece_bytes_max, self.closes_idle);
        self.processes.retain_mut(|process| {
            let goes_on = process.read(choices.size(piece_bytes_max), choices)
                && process.write(choices.size(piece_bytes_max));
            let is_idle = process.reader.is_between_requests() && process.out.is_empty();
            goes_on && !(closes_idle && is_idle && process.asked.is_answered && choices.chance(30))
        });
    }
}

impl Process {
    /// Reads at most so many bytes; `false`: the connection is over.
    fn read(&mut self, bytes_max: usize, choices: &mut Choices) -> bool {
        let mut input = vec![0; bytes_max];
        let count = match self.stream.read(&mut input) {
            Ok(0) => return false,
            Ok(count) => count,
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        };
        let mut rest = &input[..count];
        loop {
            let (consumed, part) = self.reader.read(rest).expect("the server speaks FastCGI");
            match part {
                Part::NeedMore => return true,
                Part::Begin { id, keep_connection, .. } => {
                    self.asked = Asked { id, keeps: keep_connection, ..Asked::default() };
                }
                Part::Params(range) => self.asked.params.extend_from_slice(&rest[range]),
                Part::Stdin(range) => self.asked.body.extend_from_slice(&rest[range]),
                Part::ParamsEnd if self.asked.query().manner == Manner::Early => self.answer(choices),
                Part::StdinEnd if !self.asked.is_answered => self.answer(choices),
                Part::ParamsEnd | Part::StdinEnd => {}
                other => panic!("{other:?}"),
            }
            rest = &rest[consumed..];
        }
    }

    /// Writes at most so many bytes; `false`: the connection is over.
    fn write(&mut self, bytes_max: usize) -> bool {
        let piece = &self.out[..self.out.len().min(bytes_max)];
        match self.stream.write(piece) {
            Ok(count) => {
                self.out.drain(..count);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
        !(self.closes && self.out.is_empty())
    }

    fn answer(&mut self, choices: &mut Choices) {
        self.asked.is_answered = true;
        let Query { number, len, manner } = self.asked.query();
        let (id, out) = (self.asked.id, &mut self.out);
        let method = self.asked.param("REQUEST_METHOD");
        let mut content = content(number, &method, &self.asked.body, len);
        let length = |len: usize| format!("Content-Length: {len}\r\n");
        let fields = match manner {
            Manner::Never => return,
            Manner::Gone => {
                self.closes = true;
                return;
            }
            Manner::Nonsense => {
                out.extend_from_slice(&[0x77; 20]);
                return;
            }
            Manner::Overloaded => String::new(),
            Manner::NoHead => "no head\r\n".into(),
            Manner::Redirect => format!("Location: {REDIRECTED_TO}\r\n"),
            Manner::Open | Manner::OpenCut => "Content-Type: text/plain\r\n".into(),
            Manner::Missing => "Status: 404 Not here\r\n".to_owned() + &length(content.len()),
            Manner::Short => length(content.len() + 10),
            Manner::Whole | Manner::Talking | Manner::Long | Manner::Early | Manner::Cut => {
                length(content.len())
            }
        };
        match manner {
            Manner::Redirect | Manner::Overloaded => content.clear(),
            Manner::Long => content.extend_from_slice(b"more"),
            Manner::Cut | Manner::OpenCut => content.truncate(content.len() / 2),
            Manner::Talking => application::push_stderr(out, id, b"a line\nhalf a line"),
            _ => {}
        }
        let mut response = if fields.is_empty() { Vec::new() } else { format!("{fields}\r\n").into_bytes() };
        response.extend_from_slice(&content);
        let mut rest = &response[..];
        while !rest.is_empty() {
            let (record, behind) = rest.split_at(choices.size(rest.len()));
            application::push_stdout(out, id, record);
            rest = behind;
        }
        match manner {
            Manner::Cut | Manner::OpenCut => self.closes = true,
            Manner::Overloaded => application::push_end(out, id, 0, ProtocolStatus::Overloaded),
            _ => application::push_end(out, id, 0, ProtocolStatus::RequestComplete),
        }
        self.reader.finish();
        self.closes |= !self.asked.keeps;
    }
}

/// What a request tells the application.
struct Query {
    number: usize,
    len: usize,
    manner: Manner,
}

impl Asked {
    fn param(&self, name: &str) -> String {
        let value = Params::new(&self.params)
            .map(|pair| pair.expect("the block is well-formed"))
            .find(|pair| pair.0 == name.as_bytes());
        value.map_or_else(String::new, |pair| String::from_utf8(pair.1.to_vec()).unwrap())
    }

    fn query(&self) -> Query {
        let query = self.param("QUERY_STRING");
        let mut parts = query.split('&');
        let mut next = || parts.next().unwrap_or_else(|| panic!("not of ours: {query:?}"));
        let (number, len, word) = (next().parse().unwrap(), next().parse().unwrap(), next());
        let manner = Manner::ALL.into_iter().find(|manner| format!("{manner:?}") == word);
        Query { number, len, manner: manner.expect("a manner") }
    }
}
