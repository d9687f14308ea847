//! An application's end of a FastCGI connection, with the hand-over protocol or without it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use baton_fcgi::RegionSlice;
use baton_fcgi::application::{
    Part, RequestReader, push_answered, push_end, push_freed, push_rest, push_slices, push_stderr,
    push_stdout, push_takes_bodies,
};
use baton_fcgi::offer::{self, Offer, Transport};
use baton_fcgi::params::Params;
use baton_fcgi::response::ProtocolStatus;

use super::answer::{Answer, Ending};
use super::cached;
use super::manner::{Manner, Query};
use super::on_client::{OnClient, Sent};
use super::region::Region;
use super::scene::Scene;
use crate::choices::Choices;

#[derive(Debug)]
pub(super) struct FastCgi {
    reader: RequestReader,
    asked: ReadRequest,
    /// Whether it takes offers up.
    knows_offers: bool,
    /// Descriptors that have arrived and belong to no offer yet.
    descriptors: VecDeque<OwnedFd>,
    region: Option<Region>,
    /// Where the server lends bodies of requests.
    pool: Option<OwnedFd>,
    /// Whether it gives the rest of an answer back when the client's socket is full.
    gives_back: bool,
    /// Clients' sockets that it keeps without reason.
    kept: Vec<OwnedFd>,
    /// The answer that is being written.
    writing: Option<Writing>,
}

/// A request as far as it has been read.
#[derive(Debug, Default)]
struct ReadRequest {
    id: u16,
    keeps: bool,
    params: Vec<u8>,
    body: Vec<u8>,
    /// Descriptors of the offer: of the way of the answer, and of the body.
    own: Option<OwnedFd>,
    file: Option<OwnedFd>,
    /// Bytes of the pool that the server has lent and that were not returned.
    lent: u32,
    is_answered: bool,
}

/// An answer on its way.
#[derive(Debug)]
struct Writing {
    manner: Manner,
    ending: Ending,
    way: AnswerPath,
}

#[derive(Debug)]
enum AnswerPath {
    /// These bytes through the connection.
    Stdout(Vec<u8>),
    /// These bytes through the region, some of them through the connection.
    Region(Vec<u8>),
    Client(Box<OnClient>),
}

/// What becomes of the connection behind an answer.
#[derive(Debug)]
pub(super) enum Behind {
    Kept,
    Closes,
    /// The process ends, but a child of it goes on with the answer.
    LeavesChild(OnClient),
}

impl FastCgi {
    pub(super) fn new(knows_offers: bool, gives_back: bool) -> Self {
        Self {
            reader: RequestReader::new(),
            asked: ReadRequest::default(),
            knows_offers,
            descriptors: VecDeque::new(),
            region: None,
            pool: None,
            gives_back,
            kept: Vec::new(),
            writing: None,
        }
    }

    pub(super) fn is_between_requests(&self) -> bool {
        self.reader.is_between_requests()
    }

    /// The client's socket, while the answer is written to it.
    pub(super) fn client(&self) -> Option<BorrowedFd<'_>> {
        match &self.writing.as_ref()?.way {
            AnswerPath::Client(on_client) => Some(on_client.as_fd()),
            _ => None,
        }
    }

    /// Reads input, and begins to answer a request that is complete.
    pub(super) fn handle_input(
        &mut self,
        mut input: &[u8],
        descriptors: Vec<OwnedFd>,
        scene: Scene<'_>,
        choices: &mut Choices,
        out: &mut Vec<u8>,
    ) {
        self.descriptors.extend(descriptors);
        loop {
            let (consumed, part) = self.reader.read(input).expect("the server speaks FastCGI");
            match part {
                Part::NeedMore => return,
                Part::Begin { id, keep_connection, .. } => {
                    self.asked = ReadRequest { id, keeps: keep_connection, ..ReadRequest::default() };
                }
                Part::Params(range) => self.asked.params.extend_from_slice(&input[range]),
                Part::Stdin(range) => self.asked.body.extend_from_slice(&input[range]),
                Part::ParamsEnd => {
                    self.take_offer(out);
                    if self.asked.query().manner == Manner::Early {
                        self.begin(scene, choices, out);
                    }
                }
                Part::Slices => self.look(choices, out),
                Part::File(range) => {
                    let file = self.asked.file.as_ref().expect("the file of the body");
                    self.asked.body.extend(read_at(file, range.offset, range.len as usize));
                }
                Part::StdinEnd if !self.asked.is_answered => self.begin(scene, choices, out),
                Part::StdinEnd => {}
                Part::Freed(bytes) => {
                    self.region.as_mut().expect("there is a region").handle_freed(bytes);
                }
                Part::GiveBack => self.give_back(out),
                other => panic!("{other:?}"),
            }
            input = &input[consumed..];
        }
    }

    /// Takes what came with the request. Half of the applications that take offers up take bodies by reference.
    fn take_offer(&mut self, out: &mut Vec<u8>) {
        let value = self.asked.param(offer::NAME);
        if value.is_empty() {
            return;
        }
        let offer = Offer::parse(value.as_bytes()).expect("an offer");
        let mut descriptors = self.descriptors.drain(..offer.fds).collect::<VecDeque<_>>();
        let bodies = offer.bodies;
        self.asked.file = if bodies.file { descriptors.pop_back() } else { None };
        if bodies.pool > 0 {
            self.pool = descriptors.pop_back();
        }
        self.asked.own = descriptors.pop_back();
        if bodies.asks && self.knows_offers && self.gives_back {
            push_takes_bodies(out, self.asked.id);
        }
    }

    /// Looks at a part of the body in the pool, and returns some of what it has.
    fn look(&mut self, choices: &mut Choices, out: &mut Vec<u8>) {
        let pool = self.pool.as_ref().expect("a pool");
        for RegionSlice { offset, len } in self.reader.slices() {
            self.asked.body.extend(read_at(pool, offset.into(), len as usize));
            self.asked.lent += len;
        }
        if !self.asked.is_answered && choices.chance(50) {
            let returned = choices.size(self.asked.lent as usize) as u32;
            let lie = if self.asked.query().manner == Manner::LiesOfMemory { self.asked.lent } else { 0 };
            push_freed(out, self.asked.id, returned + lie);
            self.asked.lent -= returned;
        }
    }

    /// The clients' sockets that it has kept since this was asked last.
    pub(super) fn take_kept(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.kept)
    }

    /// Decides how the request is answered.
    fn begin(&mut self, scene: Scene<'_>, choices: &mut Choices, out: &mut Vec<u8>) {
        self.asked.is_answered = true;
        let query = self.asked.query();
        let method = self.asked.param("REQUEST_METHOD");
        let answer = match query.manner {
            Manner::Cached => {
                let field = |name: &str| {
                    self.asked.param(&format!("HTTP_{}", name.to_ascii_uppercase().replace('-', "_")))
                };
                let scheme = self.asked.param("REQUEST_SCHEME");
                cached::answer((query.number as u32, scheme), &method, &field, scene, choices)
            }
            _ => Answer::to(query, &method, &self.asked.body, scene),
        };
        if query.manner == Manner::Nonsense {
            out.extend_from_slice(&answer.bytes);
            return;
        }
        if query.manner == Manner::Talking {
            push_stderr(out, self.asked.id, b"a line\nhalf a line");
        }
        let ending = answer.ending;
        let way = self.way(answer, choices);
        self.writing = Some(Writing { manner: query.manner, ending, way });
    }

    /// Takes the offer up, or declines it.
    fn way(&mut self, answer: Answer, choices: &mut Choices) -> AnswerPath {
        let value = self.asked.param(offer::NAME);
        if value.is_empty() {
            return AnswerPath::Stdout(answer.bytes);
        }
        let offer = Offer::parse(value.as_bytes()).expect("an offer");
        let own = self.asked.own.take();
        if !self.knows_offers {
            return AnswerPath::Stdout(answer.bytes);
        }
        match offer.transport {
            Transport::Shm(ring) => {
                self.region = own.map(Region::new).or(self.region.take());
                self.region.as_mut().expect("a region comes with its first offer").handle_offer(ring);
                AnswerPath::Region(answer.bytes)
            }
            Transport::PassFd(terms) => {
                let client = own.expect("a socket comes with each offer");
                let begun = OnClient::begin(&answer, client, terms, offer.fields, choices);
                begun.map_or(AnswerPath::Stdout(answer.bytes), |begun| AnswerPath::Client(begun.into()))
            }
            Transport::Unknown => panic!("unknown: {value}"),
        }
    }

    /// Goes on with the answer, to the client at most so many bytes. Returns what comes behind it, if that is all of it.
    pub(super) fn write(
        &mut self,
        bytes_max: usize,
        choices: &mut Choices,
        out: &mut Vec<u8>,
    ) -> Option<Behind> {
        let Writing { manner, ending, mut way } = self.writing.take()?;
        let is_written = match &mut way {
            AnswerPath::Stdout(bytes) => {
                push_records(out, self.asked.id, bytes, choices);
                true
            }
            AnswerPath::Region(bytes) => self.write_to_region(bytes, manner, choices, out),
            AnswerPath::Client(on_client) => match on_client.write(bytes_max) {
                Sent::Full if self.gives_back => {
                    self.writing = Some(Writing { manner, ending, way });
                    self.give_back(out);
                    return None;
                }
                _ if manner == Manner::DiesHolding => {
                    let AnswerPath::Client(on_client) = way else { return None };
                    return Some(Behind::LeavesChild(*on_client));
                }
                sent @ (Sent::All | Sent::Gone) => {
                    if manner == Manner::KeepsSocket {
                        self.kept.push(on_client.as_fd().try_clone_to_owned().unwrap());
                    }
                    if ending == Ending::Complete {
                        push_answered(out, self.asked.id, &on_client.answered(sent, manner));
                    }
                    true
                }
                Sent::Part | Sent::Full => false,
            },
        };
        if is_written {
            drop(way);
            return self.end(ending, out);
        }
        self.writing = Some(Writing { manner, ending, way });
        None
    }

    /// Returns whether all of the bytes have been written.
    fn write_to_region(
        &mut self,
        bytes: &mut Vec<u8>,
        manner: Manner,
        choices: &mut Choices,
        out: &mut Vec<u8>,
    ) -> bool {
        let (id, region) = (self.asked.id, self.region.as_mut().expect("a region"));
        while !bytes.is_empty() {
            if manner == Manner::LiesOfMemory && choices.chance(50) {
                push_slices(out, id, &[region.forbidden(choices)]);
            }
            if choices.chance(20) {
                let piece: Vec<u8> = bytes.drain(..choices.size(bytes.len())).collect();
                push_stdout(out, id, &piece);
            } else {
                match region.write(bytes, choices) {
                    Some(slice) => push_slices(out, id, &[slice]),
                    None => return false,
                }
            }
        }
        true
    }

    /// Hands the rest of an answer on the client's socket back, if there is one.
    fn give_back(&mut self, out: &mut Vec<u8>) {
        self.writing = match self.writing.take() {
            Some(Writing { manner, ending: Ending::Complete, way: AnswerPath::Client(on_client) })
                if on_client.is_whole() =>
            {
                let (rest, bytes) = on_client.give_back();
                push_rest(out, self.asked.id, &rest);
                Some(Writing { manner, ending: Ending::Complete, way: AnswerPath::Stdout(bytes) })
            }
            other => other,
        };
    }

    fn end(&mut self, ending: Ending, out: &mut Vec<u8>) -> Option<Behind> {
        let status = match ending {
            Ending::Never => return None,
            Ending::Closes => return Some(Behind::Closes),
            Ending::Refuses => ProtocolStatus::Overloaded,
            Ending::Complete => ProtocolStatus::RequestComplete,
        };
        push_end(out, self.asked.id, 0, status);
        self.reader.finish();
        Some(if self.asked.keeps { Behind::Kept } else { Behind::Closes })
    }
}

impl ReadRequest {
    fn param(&self, name: &str) -> String {
        let value = Params::new(&self.params)
            .map(|pair| pair.expect("the block is well-formed"))
            .find(|pair| pair.0 == name.as_bytes());
        value.map_or_else(String::new, |pair| String::from_utf8(pair.1.to_vec()).unwrap())
    }

    fn query(&self) -> Query {
        let path = self.param("SCRIPT_NAME") + &self.param("PATH_INFO");
        Query::read(&path, &self.param("QUERY_STRING"))
    }
}

fn read_at(file: &OwnedFd, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    assert_eq!(rustix::io::pread(file, &mut bytes, offset), Ok(len), "what the server has lent is there");
    bytes
}

/// Writes an answer in records of any length.
fn push_records(out: &mut Vec<u8>, id: u16, mut bytes: &[u8], choices: &mut Choices) {
    while !bytes.is_empty() {
        let (record, behind) = bytes.split_at(choices.size(bytes.len()));
        push_stdout(out, id, record);
        bytes = behind;
    }
}
