//! Why a stream or a connection of HTTP/2 ends early: codes on the wire, and the words of logs and metrics.

use std::fmt;

use super::bounds::Bound;

macro_rules! codes {
    ($($(#[$doc:meta])+ $name:ident = $number:literal, $label:literal;)*) => {
        /// A code in RST_STREAM and GOAWAY (RFC 9113 section 7).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum ErrorCode {
            $($(#[$doc])+ $name = $number,)*
        }

        impl ErrorCode {
            /// The code that a peer sent; unknown ones count as [`Self::Internal`], as section 7 allows.
            pub fn of_wire(number: u32) -> Self {
                match number {
                    $($number => Self::$name,)*
                    _ => Self::Internal,
                }
            }

            /// One word for logs and metrics.
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }
        }
    };
}

codes! {
    /// No error: a graceful end.
    NoError = 0x0, "no-error";
    /// The peer broke the protocol.
    Protocol = 0x1, "protocol-error";
    /// The sender failed.
    Internal = 0x2, "internal-error";
    /// The peer broke the rules of flow control.
    FlowControl = 0x3, "flow-control-error";
    /// SETTINGS were not acknowledged in time.
    SettingsTimeout = 0x4, "settings-timeout";
    /// A frame on a stream that was closed.
    StreamClosed = 0x5, "stream-closed";
    /// A frame of a wrong size.
    FrameSize = 0x6, "frame-size-error";
    /// The stream was refused before any work: the client may repeat the request.
    RefusedStream = 0x7, "refused-stream";
    /// The stream is no longer needed.
    Cancel = 0x8, "cancel";
    /// The state of header compression is lost.
    Compression = 0x9, "compression-error";
    /// The connection of a CONNECT request was reset.
    Connect = 0xa, "connect-error";
    /// The peer causes too much work.
    EnhanceYourCalm = 0xb, "enhance-your-calm";
    /// TLS is not good enough.
    InadequateSecurity = 0xc, "inadequate-security";
    /// The request must be made over HTTP/1.1.
    Http11Required = 0xd, "http-1-1-required";
}

crate::reasons! {
    /// How a client broke the protocol.
    Violation with
    /// The code that the client gets.
    code -> ErrorCode {
        // Of the connection

        /// The connection does not begin with the preface (RFC 9113 section 3.4).
        Preface => Protocol, "preface",
            "the connection does not begin with the preface of HTTP/2";
        /// The first frame is not SETTINGS.
        FirstFrame => Protocol, "first-frame",
            "the first frame of the client is not SETTINGS";
        /// A frame is longer than 16384 bytes, which nothing allowed.
        FrameTooLong => FrameSize, "frame-too-long",
            "a frame is longer than SETTINGS_MAX_FRAME_SIZE allows";
        /// A frame has a length that its type does not have.
        FrameLength => FrameSize, "frame-length",
            "a frame has not the length of its type";
        /// Padding is longer than its frame.
        Padding => Protocol, "padding",
            "the padding of a frame is longer than the frame";
        /// A frame of a connection on a stream, or one of a stream on stream 0.
        FrameStream => Protocol, "frame-stream",
            "a frame belongs to stream 0 and is on another, or the other way round";
        /// The client opens a stream with an even number, or one that is not higher than the last.
        StreamNumber => Protocol, "stream-number",
            "streams of clients have odd numbers, each higher than the last";
        /// A frame on a stream that was never opened.
        IdleStream => Protocol, "idle-stream",
            "a frame is on a stream that was not opened";
        /// A frame on a stream that the client has ended.
        ClosedStream => StreamClosed, "closed-stream",
            "a frame is on a stream that the client has ended";
        /// Another frame between those of a header block, or CONTINUATION outside of one.
        BlockInterrupted => Protocol, "block-interrupted",
            "CONTINUATION is missing, or continues nothing";
        /// A client must not push.
        Push => Protocol, "push",
            "the client sent PUSH_PROMISE";
        /// A setting has a value that it must not have.
        SettingValue => Protocol, "setting-value",
            "a setting has a value that it must not have";
        /// An initial window is larger than 2^31-1, or makes that of a stream so.
        InitialWindow => FlowControl, "initial-window",
            "SETTINGS_INITIAL_WINDOW_SIZE makes a window larger than 2^31-1 bytes";
        /// SETTINGS were not acknowledged in time.
        SettingsUnacknowledged => SettingsTimeout, "settings-unacknowledged",
            "the client did not acknowledge SETTINGS in time";
        /// WINDOW_UPDATE by 0.
        WindowIncrement => Protocol, "window-increment",
            "WINDOW_UPDATE changes nothing";
        /// WINDOW_UPDATE makes a window larger than 2^31-1.
        WindowOverflow => FlowControl, "window-overflow",
            "WINDOW_UPDATE makes a window larger than 2^31-1 bytes";
        /// More DATA than the windows allow.
        WindowExceeded => FlowControl, "window-exceeded",
            "the client sent more DATA than the window allows";
        /// The state of HPACK is lost.
        BlockCompression => Compression, "block-compression",
            "a header block cannot be decoded";

        // Of one stream

        /// Trailers without the end of the stream, or malformed ones.
        TrailersMalformed => Protocol, "trailers-malformed",
            "the trailers of the request are malformed";
        /// The body has not the length that Content-Length says.
        ContentLength => Protocol, "content-length",
            "the body is not as long as Content-Length says";
    }
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The client broke the protocol.
    Violation(Violation),
    /// The client went over a bound.
    Bound(Bound),
}

/// The end of a connection by the server. GOAWAY with the code waits to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionError {
    /// The code that the client gets.
    pub code: ErrorCode,
    /// Why.
    pub why: Cause,
}

impl ConnectionError {
    /// One word for logs and metrics.
    pub const fn label(&self) -> &'static str {
        match self.why {
            Cause::Violation(violation) => violation.label(),
            Cause::Bound(bound) => bound.label(),
        }
    }
}

impl From<Violation> for ConnectionError {
    fn from(violation: Violation) -> Self {
        Self { code: violation.code(), why: Cause::Violation(violation) }
    }
}

impl From<Bound> for ConnectionError {
    fn from(bound: Bound) -> Self {
        Self { code: ErrorCode::EnhanceYourCalm, why: Cause::Bound(bound) }
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.why {
            Cause::Violation(violation) => violation.fmt(f),
            Cause::Bound(bound) => bound.fmt(f),
        }
    }
}

impl std::error::Error for ConnectionError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// A word in the log or a metric means one thing.
    #[test]
    fn words_are_unique() {
        let violations = Violation::ALL.iter().map(|violation| violation.label());
        let words: Vec<_> = violations.chain(Bound::ALL.iter().map(|bound| bound.label())).collect();
        assert_eq!(words.iter().collect::<HashSet<_>>().len(), words.len());
    }

    #[test]
    fn codes_survive_the_way_out_and_back() {
        for number in 0..=0xd {
            assert_eq!(ErrorCode::of_wire(number) as u32, number);
        }
        assert_eq!(ErrorCode::of_wire(0xe), ErrorCode::Internal);
    }
}
