//! An application's end of a FastCGI connection.

use baton_fcgi::application::{Part, RequestReader, push_end, push_stderr, push_stdout};
use baton_fcgi::params::Params;
use baton_fcgi::response::ProtocolStatus;

use super::answer::{Answer, Ending};
use super::manner::{Manner, Query};
use crate::simulation::choices::Choices;
use crate::simulation::site::Folder;

#[derive(Debug, Default)]
pub(super) struct FastCgi {
    reader: RequestReader,
    asked: Asked,
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

impl FastCgi {
    pub(super) fn is_between_requests(&self) -> bool {
        self.reader.is_between_requests()
    }

    /// Reads input, and writes an answer if it completes a request. Returns whether the connection ends behind an answer.
    pub(super) fn handle_input(
        &mut self,
        mut input: &[u8],
        folder: &Folder,
        choices: &mut Choices,
        out: &mut Vec<u8>,
    ) -> Option<bool> {
        let mut ends = None;
        loop {
            let (consumed, part) = self.reader.read(input).expect("the server speaks FastCGI");
            match part {
                Part::NeedMore => return ends,
                Part::Begin { id, keep_connection, .. } => {
                    self.asked = Asked { id, keeps: keep_connection, ..Asked::default() };
                }
                Part::Params(range) => self.asked.params.extend_from_slice(&input[range]),
                Part::Stdin(range) => self.asked.body.extend_from_slice(&input[range]),
                Part::ParamsEnd if self.asked.query().manner == Manner::Early => {
                    ends = Some(self.answer(folder, choices, out));
                }
                Part::StdinEnd if !self.asked.is_answered => ends = Some(self.answer(folder, choices, out)),
                Part::ParamsEnd | Part::StdinEnd => {}
                other => panic!("{other:?}"),
            }
            input = &input[consumed..];
        }
    }

    /// Returns whether the connection ends behind the answer.
    fn answer(&mut self, folder: &Folder, choices: &mut Choices, out: &mut Vec<u8>) -> bool {
        self.asked.is_answered = true;
        let (id, query) = (self.asked.id, self.asked.query());
        let method = self.asked.param("REQUEST_METHOD");
        let answer = Answer::to(query, &method, &self.asked.body, folder);
        if query.manner == Manner::Nonsense {
            out.extend_from_slice(&answer.bytes);
            return false;
        }
        if query.manner == Manner::Talking {
            push_stderr(out, id, b"a line\nhalf a line");
        }
        let mut rest = &answer.bytes[..];
        while !rest.is_empty() {
            let (record, behind) = rest.split_at(choices.size(rest.len()));
            push_stdout(out, id, record);
            rest = behind;
        }
        match answer.ending {
            Ending::Never => return false,
            Ending::Closes => return true,
            Ending::Refuses => push_end(out, id, 0, ProtocolStatus::Overloaded),
            Ending::Complete => push_end(out, id, 0, ProtocolStatus::RequestComplete),
        }
        self.reader.finish();
        !self.asked.keeps
    }
}

impl Asked {
    fn param(&self, name: &str) -> String {
        let value = Params::new(&self.params)
            .map(|pair| pair.expect("the block is well-formed"))
            .find(|pair| pair.0 == name.as_bytes());
        value.map_or_else(String::new, |pair| String::from_utf8(pair.1.to_vec()).unwrap())
    }

    fn query(&self) -> Query {
        Query::read(&self.param("QUERY_STRING"))
    }
}
