//! Records: eight bytes of header, content, padding (FastCGI 1.0 section 3.3).

use crate::Broken;

/// The length of a record's header in bytes.
pub const HEADER_BYTES: usize = 8;

/// The most content that one record can have, in bytes.
pub const CONTENT_BYTES_MAX: usize = 65_535;

/// The request id of management records, which belong to the connection (section 3.3, "Types of record
/// types").
pub const MANAGEMENT_ID: u16 = 0;

/// The type of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RecordType {
    /// To the application: a request begins.
    BeginRequest = 1,
    /// To the application: the server no longer wants the answer.
    AbortRequest = 2,
    /// To the server: a request has ended.
    EndRequest = 3,
    /// To the application: name-value pairs.
    Params = 4,
    /// To the application: the body of the request.
    Stdin = 5,
    /// To the server: the response.
    Stdout = 6,
    /// To the server: messages for the error log.
    Stderr = 7,
    /// To the application: a second stream, of the Filter role alone.
    Data = 8,
    /// Management, to the application: what can you do?
    GetValues = 9,
    /// Management, to the server: this.
    GetValuesResult = 10,
    /// Management, to the server: a management record was not understood.
    UnknownType = 11,
    /// Both ways: the hand-over protocol.
    Baton = 66,
}

impl RecordType {
    /// The type with this number.
    pub const fn from_u8(kind: u8) -> Option<Self> {
        Some(match kind {
            1 => Self::BeginRequest,
            2 => Self::AbortRequest,
            3 => Self::EndRequest,
            4 => Self::Params,
            5 => Self::Stdin,
            6 => Self::Stdout,
            7 => Self::Stderr,
            8 => Self::Data,
            9 => Self::GetValues,
            10 => Self::GetValuesResult,
            11 => Self::UnknownType,
            66 => Self::Baton,
            _ => return None,
        })
    }
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The number of its type, which need not be a known one.
    pub kind: u8,
    /// The request that it belongs to; [`MANAGEMENT_ID`] for the connection.
    pub request_id: u16,
    /// Bytes of content that follow.
    pub content_len: u16,
    /// Meaningless bytes after the content.
    pub padding_len: u8,
}

impl RecordHeader {
    /// Reads a header.
    ///
    /// # Errors
    /// [`Broken::Version`]: what does not begin with the version is no record.
    pub const fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Broken> {
        let [version, kind, id_high, id_low, len_high, len_low, padding_len, _reserved] = *bytes;
        if version != VERSION {
            return Err(Broken::Version(version));
        }
        Ok(Self {
            kind,
            request_id: u16::from_be_bytes([id_high, id_low]),
            content_len: u16::from_be_bytes([len_high, len_low]),
            padding_len,
        })
    }

    /// Writes the header.
    pub const fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let [id_high, id_low] = self.request_id.to_be_bytes();
        let [len_high, len_low] = self.content_len.to_be_bytes();
        [VERSION, self.kind, id_high, id_low, len_high, len_low, self.padding_len, 0]
    }
}

/// The header of a record without padding. Padding is for the convenience of the receiver, and none that
/// matters reads whole words from a socket.
///
/// # Panics
/// If `content_len` is above [`CONTENT_BYTES_MAX`]: streams are cut before.
pub(crate) const fn header(kind: RecordType, request_id: u16, content_len: usize) -> [u8; HEADER_BYTES] {
    assert!(content_len <= CONTENT_BYTES_MAX, "a record's content has at most 65,535 bytes");
    RecordHeader { kind: kind as u8, request_id, content_len: content_len as u16, padding_len: 0 }.to_bytes()
}

/// Appends one record.
///
/// # Panics
/// If the content does not fit into one.
pub(crate) fn push_record(out: &mut Vec<u8>, kind: RecordType, request_id: u16, content: &[u8]) {
    out.extend_from_slice(&header(kind, request_id, content.len()));
    out.extend_from_slice(content);
}

/// Appends a part of a stream: as many records as it takes, and none for no bytes, since an empty record
/// ends a stream (section 3.3, "Types of record types").
pub(crate) fn push_stream(out: &mut Vec<u8>, kind: RecordType, request_id: u16, bytes: &[u8]) {
    out.reserve(bytes.len() + bytes.len().div_ceil(CONTENT_BYTES_MAX) * HEADER_BYTES);
    for content in bytes.chunks(CONTENT_BYTES_MAX) {
        push_record(out, kind, request_id, content);
    }
}

/// The content of a record whose type has eight bytes of it.
pub(crate) fn eight_bytes(content: &[u8], kind: RecordType) -> Result<[u8; 8], Broken> {
    content.try_into().map_err(|_| Broken::ContentLength(kind as u8))
}

/// The only version there is.
const VERSION: u8 = 1;
