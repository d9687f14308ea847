//! An application's end of an SCGI connection.

use super::answer::{Answer, Ending};
use super::manner::{Manner, Query};
use super::scene::Scene;

#[derive(Debug, Default)]
pub(super) struct Scgi {
    input: Vec<u8>,
    is_answered: bool,
}

impl Scgi {
    /// Reads input, and writes an answer if it completes a request. Returns whether the connection ends behind an answer.
    pub(super) fn handle_input(&mut self, input: &[u8], scene: Scene<'_>, out: &mut Vec<u8>) -> bool {
        self.input.extend_from_slice(input);
        let Some((head, body)) = self.split() else { return false };
        let words: Vec<_> = head.split(|&byte| byte == 0).collect();
        let param = |name: &str| {
            let pair = words.chunks_exact(2).find(|pair| pair[0] == name.as_bytes());
            pair.map_or("", |pair| std::str::from_utf8(pair[1]).unwrap())
        };
        let (query, length) = (Query::read("", param("QUERY_STRING")), param("CONTENT_LENGTH"));
        let is_early = query.manner == Manner::Early;
        let is_read = body.len() == length.parse::<usize>().expect("a length");
        if self.is_answered || !(is_read || is_early) {
            return false;
        }
        let body = if is_early { b"" } else { body };
        let answer = Answer::to(query, param("REQUEST_METHOD"), body, scene);
        out.extend_from_slice(&answer.bytes);
        self.is_answered = true;
        // Bytes that no answer begins with are one, too, if the connection ends behind them.
        answer.ending != Ending::Never || query.manner == Manner::Nonsense
    }

    /// The netstring of the parameters, and what has come of the body behind it.
    fn split(&self) -> Option<(&[u8], &[u8])> {
        let colon = self.input.iter().position(|&byte| byte == b':')?;
        let len: usize = std::str::from_utf8(&self.input[..colon]).unwrap().parse().expect("a length");
        let behind = &self.input[colon + 1..];
        let (head, rest) = behind.split_at_checked(len)?;
        let (comma, body) = rest.split_first()?;
        assert_eq!(*comma, b',');
        Some((head, body))
    }
}
