//! An answer that an application writes on the client's own socket (`docs/handover-protocol.md`, section 4).

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use baton_fcgi::cgi::{CgiHead, Instruction, find_end};
use baton_fcgi::{AnswerOutcome, Answered, Rest};
use baton_http::response::{Client, Framing, LAST_CHUNK, push_chunk_head};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};

use super::answer::{Answer, Ending};
use super::manner::Manner;
use crate::choices::Choices;

/// An answer on its way to the client.
#[derive(Debug)]
pub(super) struct OnClient {
    client: OwnedFd,
    status: u16,
    /// The answer as on the wire.
    wire: Vec<u8>,
    head_len: usize,
    /// Where in it the content is.
    contents: Vec<Range<usize>>,
    sent: usize,
    /// Whether the content is as long as the head says.
    is_whole: bool,
    may_go_on: bool,
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    All,
    Part,
    /// The client's socket takes no more for now.
    Full,
    /// The client is gone.
    Gone,
}

impl OnClient {
    /// `None`: the answer asks something of the server, or is none; the offer is declined.
    pub(super) fn begin(
        answer: &Answer,
        client: OwnedFd,
        terms: Client,
        fields: &[u8],
        choices: &mut Choices,
    ) -> Option<Self> {
        let body_at = find_end(&answer.bytes, 0)?;
        let head = CgiHead::parse(answer.bytes[..body_at].to_vec()).ok()?;
        if *head.instruction() != Instruction::None {
            return None;
        }
        let mut body = &answer.bytes[body_at..];
        let knows_length = answer.ending == Ending::Complete && choices.chance(50);
        let framing = head.framing(knows_length.then_some(body.len() as u64), terms);
        let mut wire = Vec::new();
        head.push_http_head(&mut wire, framing, terms, fields);
        let (head_len, mut contents) = (wire.len(), Vec::new());
        let mut is_whole = true;
        match framing {
            _ if terms.head => {}
            Framing::None => {}
            Framing::Length(length) => {
                is_whole = length <= body.len() as u64;
                let len = body.len().min(length as usize);
                contents.push(head_len..head_len + len);
                wire.extend_from_slice(&body[..len]);
            }
            Framing::Close => {
                contents.push(head_len..head_len + body.len());
                wire.extend_from_slice(body);
            }
            Framing::Chunked => {
                while !body.is_empty() {
                    let (chunk, behind) = body.split_at(choices.size(body.len()));
                    push_chunk_head(&mut wire, chunk.len() as u64);
                    contents.push(wire.len()..wire.len() + chunk.len());
                    wire.extend_from_slice(chunk);
                    wire.extend_from_slice(b"\r\n");
                    body = behind;
                }
                if answer.ending == Ending::Complete {
                    wire.extend_from_slice(LAST_CHUNK);
                }
            }
        }
        let (status, may_go_on) = (head.status(), framing.may_go_on(terms));
        Some(Self { client, status, wire, head_len, contents, sent: 0, is_whole, may_go_on })
    }

    /// Writes at most so many bytes.
    pub(super) fn write(&mut self, bytes_max: usize) -> Sent {
        let rest = &self.wire[self.sent..];
        let piece = &rest[..rest.len().min(bytes_max)];
        if piece.is_empty() {
            return Sent::All;
        }
        match send(&self.client, piece, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(count) => self.sent += count,
            Err(Errno::AGAIN) => return Sent::Full,
            Err(_) => return Sent::Gone,
        }
        if self.sent == self.wire.len() { Sent::All } else { Sent::Part }
    }

    /// The report of an answer that was written as far as [`write`](Self::write) came.
    pub(super) fn answered(&self, sent: Sent, manner: Manner) -> Answered {
        let (head_bytes, body_bytes) = self.counts();
        let outcome = match sent {
            Sent::Gone => AnswerOutcome::ClientGone,
            _ if self.is_whole => AnswerOutcome::Complete,
            _ => AnswerOutcome::ApplicationFailed,
        };
        let complete = outcome == AnswerOutcome::Complete;
        let may_go_on = complete && self.may_go_on;
        let honest = Answered { complete, may_go_on, outcome, status: self.status, head_bytes, body_bytes };
        match manner {
            Manner::ClaimsMore => Answered { head_bytes: u64::MAX, body_bytes: u64::MAX, ..honest },
            Manner::ClaimsLess => Answered { head_bytes: 0, body_bytes: 0, ..honest },
            Manner::ClaimsPart => Answered { complete: false, may_go_on: false, ..honest },
            _ => honest,
        }
    }

    /// Gives the rest back: the report, and the bytes.
    pub(super) fn give_back(self) -> (Rest, Vec<u8>) {
        let (head_sent, body_sent) = self.counts();
        let rest =
            Rest { may_go_on: self.is_whole && self.may_go_on, status: self.status, head_sent, body_sent };
        (rest, self.wire[self.sent..].to_vec())
    }

    /// Whether all of the content that the head announces is there.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Bytes of the head and of the content that the client's socket has taken.
    fn counts(&self) -> (u64, u64) {
        let taken = |range: &Range<usize>| range.end.min(self.sent).saturating_sub(range.start);
        let content: usize = self.contents.iter().map(taken).sum();
        (self.sent.min(self.head_len) as u64, content as u64)
    }
}

impl AsFd for OnClient {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.client.as_fd()
    }
}
