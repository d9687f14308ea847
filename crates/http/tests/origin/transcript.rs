//! What a [`ResponseReader`] says of a connection's bytes, as a value that can be compared.

use baton_http::origin::{
    BadResponse, RESPONSE_HEAD_BYTES_MAX, RequestKind, ResponseHead, ResponsePart, ResponseReader, StreamEnd,
    Trailers,
};
use std::fmt;

/// One response, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transcript {
    pub(crate) interim: Vec<ResponseHead>,
    pub(crate) head: Option<ResponseHead>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<Trailers>,
    pub(crate) ending: Ending,
    /// Bytes behind the end, which are the other protocol's after a switch.
    pub(crate) rest: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    End { reusable: bool },
    Switch,
    Stream(StreamEnd),
    Refused(BadResponse),
}

/// Reads `text` in pieces that end at `cuts`, which are sorted, and then the end of the connection.
pub(crate) fn read(asked: RequestKind, text: &[u8], cuts: &[usize]) -> Transcript {
    let mut reader = ResponseReader::new(RESPONSE_HEAD_BYTES_MAX);
    reader.begin(asked, Vec::new());
    let mut all = Transcript {
        interim: Vec::new(),
        head: None,
        body: Vec::new(),
        trailers: None,
        ending: Ending::Switch,
        rest: Vec::new(),
    };
    let mut start = 0;
    for end in cuts.iter().copied().chain([text.len()]) {
        let mut piece = &text[start..end];
        start = end;
        loop {
            let (count, part) = match reader.read(piece) {
                Ok(read) => read,
                Err(reason) => return Transcript { ending: Ending::Refused(reason), ..all },
            };
            let used = &piece[..count];
            piece = &piece[count..];
            match part {
                ResponsePart::NeedMore => {
                    assert!(piece.is_empty());
                    break;
                }
                ResponsePart::Interim(head) => all.interim.push(head),
                ResponsePart::Head(head) => assert!(all.head.replace(head).is_none()),
                ResponsePart::Body(range) => {
                    assert!(!range.is_empty() && all.head.is_some());
                    all.body.extend_from_slice(&used[range]);
                }
                ResponsePart::Trailers(trailers) => assert!(all.trailers.replace(trailers).is_none()),
                ResponsePart::Switch(head) => {
                    all.head = Some(head);
                    all.rest = [piece, &text[start..]].concat();
                    return all;
                }
                ResponsePart::End { reusable } => {
                    all.rest = [piece, &text[start..]].concat();
                    return Transcript { ending: Ending::End { reusable }, ..all };
                }
            }
        }
    }
    Transcript { ending: Ending::Stream(reader.handle_end()), ..all }
}

impl Transcript {
    /// Stray bytes are known only if they arrive with the end.
    pub(crate) fn without_stray(&self) -> Self {
        let mut same = self.clone();
        if let (Ending::End { reusable }, false) = (&mut same.ending, self.rest.is_empty()) {
            *reusable = false;
        }
        same
    }

    pub(crate) fn refused(&self) -> Option<BadResponse> {
        match self.ending {
            Ending::Refused(reason) => Some(reason),
            _ => None,
        }
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for head in &self.interim {
            write!(f, "interim {} ", head.status().code())?;
        }
        if self.ending == Ending::Switch {
            f.write_str("switch ")?;
        }
        if let Some(head) = &self.head {
            write!(f, "{} ", head.status().code())?;
        }
        if !self.body.is_empty() {
            write!(f, "{} ", String::from_utf8_lossy(&self.body))?;
        }
        for (name, value) in self.trailers.iter().flat_map(Trailers::fields) {
            write!(f, "trailers {}: {} ", String::from_utf8_lossy(name), String::from_utf8_lossy(value))?;
        }
        match &self.ending {
            Ending::End { reusable: true } => f.write_str(". keeps")?,
            Ending::End { reusable: false } | Ending::Stream(StreamEnd::Complete) => {
                f.write_str(". closes")?;
            }
            Ending::Switch => return write!(f, "({})", String::from_utf8_lossy(&self.rest)),
            Ending::Stream(StreamEnd::Silent) => f.write_str("silent")?,
            Ending::Stream(StreamEnd::Cut) => f.write_str("cut")?,
            Ending::Refused(reason) => write!(f, "refused {}", reason.label())?,
        }
        match self.rest.len() {
            0 => Ok(()),
            len => write!(f, " stray {len}"),
        }
    }
}
