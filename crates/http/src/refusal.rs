//! Why a request was refused.

use crate::Status;

crate::reasons! {
    /// Why a request was refused. An HTTP/1 connection ends after any of them, because the position of the next
    /// request is unknown.
    Refusal with
    /// The status that the client gets.
    status -> Status {
        // The head as a whole

        /// TLS was spoken to a port that speaks plain HTTP.
        TlsHandshake => BAD_REQUEST, "tls-handshake",
            "this port speaks plain HTTP, and the client began a TLS handshake";
        /// The head is longer than the limit.
        HeadTooLarge => REQUEST_HEADER_FIELDS_TOO_LARGE, "head-too-large",
            "the head of the request is larger than the limit";
        /// There are more field lines than the limit.
        FieldsTooMany => REQUEST_HEADER_FIELDS_TOO_LARGE, "fields-too-many",
            "the request has more header fields than the limit";
        /// The head does not end with its first blank line.
        HeadIncomplete => BAD_REQUEST, "head-incomplete",
            "the head of the request does not end with an empty line";
        /// A line ends with LF alone (RFC 9112 section 2.2 lets a recipient accept it; not all do).
        BareLineFeed => BAD_REQUEST, "bare-line-feed",
            "a line ends with LF alone: lines end with CR LF";
        /// A CR that no LF follows (RFC 9112 section 2.2).
        BareCarriageReturn => BAD_REQUEST, "bare-carriage-return",
            "a CR is not followed by LF";

        // The request line

        /// The request line is not method, blank, target, blank, version (RFC 9112 section 3).
        RequestLine => BAD_REQUEST, "request-line",
            "the request line is not a method, a target and a version with one space between them";
        /// The method is not a token.
        Method => BAD_REQUEST, "method",
            "the method is not a token";
        /// A version of HTTP that is not spoken here.
        Version => HTTP_VERSION_NOT_SUPPORTED, "version",
            "only HTTP/1 is spoken here";
        /// The target is longer than the limit.
        TargetTooLong => URI_TOO_LONG, "target-too-long",
            "the request target is longer than the limit";
        /// The target has control characters, or a fragment.
        TargetBytes => BAD_REQUEST, "target-bytes",
            "the request target has control characters, which must be percent-encoded, or a fragment";
        /// The form of the target does not fit the method (RFC 9112 section 3.2).
        TargetForm => BAD_REQUEST, "target-form",
            "the request target has none of the forms that the method allows";
        /// The authority within the target is malformed or has user information (RFC 9110 section 4.2.4).
        TargetAuthority => BAD_REQUEST, "target-authority",
            "the host or port in the request target is malformed";

        // Field lines

        /// A field line begins with a blank: an obsolete folded line, or a blank before the first field
        /// (RFC 9112 sections 2.2 and 5.2).
        FoldedLine => BAD_REQUEST, "folded-line",
            "a header line begins with white space: folded lines are obsolete";
        /// A field name is empty, has bytes that no token has, or a blank before its colon
        /// (RFC 9112 section 5.1).
        FieldName => BAD_REQUEST, "field-name",
            "a header field's name is not a token followed by a colon";
        /// A field value has control characters.
        FieldValue => BAD_REQUEST, "field-value",
            "a header field's value has control characters";

        // Host

        /// A request of HTTP/1.1 or later names no host.
        HostMissing => BAD_REQUEST, "host-missing",
            "a request of HTTP/1.1 or later must name its host";
        /// There is more than one Host field.
        HostRepeated => BAD_REQUEST, "host-repeated",
            "the request has more than one Host field";
        /// The Host field is not a host with an optional port.
        HostInvalid => BAD_REQUEST, "host-invalid",
            "the Host field is not a host name or address with an optional port";

        // Framing of the body

        /// Content-Length is not a decimal number, or does not fit 64 bits.
        LengthInvalid => BAD_REQUEST, "length-invalid",
            "Content-Length is not a number";
        /// There is more than one Content-Length, equal or not.
        LengthRepeated => BAD_REQUEST, "length-repeated",
            "the request has more than one Content-Length";
        /// Both Content-Length and Transfer-Encoding: the mark of request smuggling (RFC 9112 section 6.1).
        LengthAndTransferEncoding => BAD_REQUEST, "length-and-transfer-encoding",
            "the request has both Content-Length and Transfer-Encoding";
        /// A transfer coding other than chunked.
        TransferEncodingUnknown => NOT_IMPLEMENTED, "transfer-encoding-unknown",
            "the only transfer coding understood here is chunked";
        /// `chunked` is not the last transfer coding, or comes twice, or the field is empty.
        TransferEncodingInvalid => BAD_REQUEST, "transfer-encoding-invalid",
            "Transfer-Encoding must name chunked once, and last";
        /// Transfer-Encoding in a request of HTTP/1.0, whose framing is faulty by definition.
        TransferEncodingInHttp10 => BAD_REQUEST, "transfer-encoding-in-http10",
            "HTTP/1.0 has no Transfer-Encoding";
        /// An expectation other than `100-continue`.
        ExpectationUnknown => EXPECTATION_FAILED, "expectation-unknown",
            "the only expectation understood here is 100-continue";

        // The chunked body

        /// A chunk's size is not hexadecimal, does not fit 64 bits, or its line is malformed.
        ChunkSize => BAD_REQUEST, "chunk-size",
            "a chunk's size is malformed";
        /// The chunk extensions of a body are longer than the limit or malformed.
        ChunkExtension => BAD_REQUEST, "chunk-extension",
            "the chunk extensions are malformed or larger than the limit";
        /// A chunk's data is not followed by CR LF.
        ChunkEnd => BAD_REQUEST, "chunk-end",
            "a chunk's data does not end where its size says";
        /// A trailer line is malformed.
        TrailerInvalid => BAD_REQUEST, "trailer-invalid",
            "a trailer field is malformed";
        /// The trailer section is longer than the limit.
        TrailerTooLarge => REQUEST_HEADER_FIELDS_TOO_LARGE, "trailer-too-large",
            "the trailer section is larger than the limit";
    }
}
