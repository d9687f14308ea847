//! Bodies of requests: how far one is, and where its contents go.

use baton_http::{BodyFraming, BodyReader, BodyStep, Refusal};

/// The state of a request's body after everything that has arrived was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyRead {
    /// It is complete.
    Complete,
    /// More is to come, but the request need not wait for it.
    Begun,
    /// More is to come, and to be read.
    Part,
    /// It is larger than the limit, or there is no room for it.
    TooLarge,
}

/// Where the contents of a body go.
pub(crate) trait BodySink {
    /// Takes some bytes of a body; `false`: there is no room for them.
    fn take(&mut self, data: &[u8]) -> bool;
    /// Whether the request can go on with what has been taken, though more is to come.
    fn has_enough(&self) -> bool;
}

/// Contents that no answer depends on.
pub(super) struct Nowhere;

impl BodySink for Nowhere {
    fn take(&mut self, _data: &[u8]) -> bool {
        true
    }

    fn has_enough(&self) -> bool {
        true
    }
}

/// Contents that are collected.
#[derive(Debug, Default)]
pub(super) struct Pieces(pub(super) Vec<u8>);

impl BodySink for Pieces {
    fn take(&mut self, data: &[u8]) -> bool {
        self.0.extend_from_slice(data);
        true
    }

    fn has_enough(&self) -> bool {
        false
    }
}

/// What is still to come of a body.
#[derive(Clone, Debug)]
pub(super) struct BodyRest {
    reader: BodyReader,
    has_length: bool,
    /// The client waits for `100 Continue`, and has sent nothing of it.
    is_awaited: bool,
    /// Bytes of content that have come.
    passed: u64,
    bytes_max: u64,
}

impl BodyRest {
    pub(super) fn new(framing: BodyFraming, bytes_max: u64) -> Self {
        let has_length = matches!(framing, BodyFraming::Length(_));
        Self { reader: BodyReader::new(framing), has_length, is_awaited: false, passed: 0, bytes_max }
    }

    /// The rest of a body whose client waits for `100 Continue`, if it does.
    pub(super) fn awaited(self, is_awaited: bool) -> Self {
        Self { is_awaited, ..self }
    }

    /// Whether it may never come: the client waits for `100 Continue`, and has sent nothing of it.
    pub(super) fn may_be_kept_back(&self) -> bool {
        self.is_awaited && self.passed == 0
    }

    /// Bytes that are still to come, if that is known.
    pub(super) fn left(&self) -> Option<u64> {
        self.has_length.then(|| self.reader.announced())
    }

    /// Whether it is sure to become larger than the limit.
    pub(super) fn is_too_large(&self) -> bool {
        self.passed.saturating_add(self.reader.announced()) > self.bytes_max
    }

    /// Reads what has arrived. Returns how many bytes of the input were consumed.
    ///
    /// # Errors
    /// It is malformed.
    pub(super) fn read(
        &mut self,
        input: &[u8],
        sink: &mut impl BodySink,
    ) -> Result<(usize, BodyRead), Refusal> {
        let mut at = 0;
        while !self.is_too_large() {
            match self.reader.read(&input[at..])? {
                BodyStep::Data { consumed, data } => {
                    self.passed += data.len() as u64;
                    at += consumed;
                    if !self.is_too_large() && !sink.take(data) {
                        break;
                    }
                }
                BodyStep::NeedMore { consumed } if self.is_too_large() => at += consumed,
                BodyStep::NeedMore { consumed } if sink.has_enough() => {
                    return Ok((at + consumed, BodyRead::Begun));
                }
                BodyStep::NeedMore { consumed } => return Ok((at + consumed, BodyRead::Part)),
                BodyStep::End { consumed } => return Ok((at + consumed, BodyRead::Complete)),
            }
        }
        Ok((at, BodyRead::TooLarge))
    }
}
