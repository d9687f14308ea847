//! The heads of HTTP/2: against the parser of HTTP/1, and a block against itself.

use baton_http::h2::hpack::Decoder;
use baton_http::h2::{CRUMBS_MAX, HeadError, HeadText, encode_response_head};
use baton_http::{BodyFraming, FIELDS_CAP, HeadLimits, Method, RequestHead, Stamp, Version};

/// Input: blocks of one connection, each behind its length (2 bytes). HTTP/1 reads the same in what comes out, and
/// every block leaves the table as it would alone.
pub fn request_block(input: &[u8]) {
    let limits = HeadLimits::default();
    let (mut text, mut decoder, mut other) = (HeadText::default(), Decoder::new(), Decoder::new());
    let (mut scratch, mut rest) = (Vec::new(), input);
    while let Some((len, tail)) = rest.split_first_chunk::<2>() {
        let (block, tail) = tail.split_at(tail.len().min(usize::from(u16::from_be_bytes(*len))));
        rest = tail;
        let mut fields = other.fields(block, &mut scratch);
        let read = loop {
            match fields.next_field() {
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(error) => break Err(HeadError::Compression(error)),
            }
        };
        let ends = block.len() % 2 == 0;
        match text.decode(&mut decoder, block, ends, &limits) {
            Ok(request) => {
                assert_eq!(read, Ok(()));
                reads_as_http1(&request.head, request.protocol.is_some(), &limits);
            }
            Err(HeadError::Compression(error)) => {
                assert_eq!(read, Err(error.into()));
                return;
            }
            Err(_) => assert_eq!(read, Ok(()), "only broken compression ends a connection"),
        }
    }
}

fn reads_as_http1(head: &RequestHead<'_>, is_extended: bool, limits: &HeadLimits) {
    assert_eq!(format!("{:?}", head.keep().get()), format!("{head:?}"));
    let fields: Vec<_> = head.fields().collect();
    assert!(fields.len() <= limits.fields_max.min(FIELDS_CAP) + 2, "and Host, and Cookie");
    let named = |name: &str| fields.iter().filter(|field| field.0 == name).count();
    assert!(named("host") == 1 && named("cookie") <= 1);
    assert!(named("connection") + named("transfer-encoding") + named("upgrade") == 0);
    if is_extended {
        assert!(head.method == Method::Connect && head.path.starts_with(b"/"));
        return;
    }
    let line = head.line.strip_suffix(b"2.0").unwrap();
    let mut lines = [line, b"1.1\r\n"].concat();
    for (name, value) in &fields {
        lines.extend_from_slice(&[name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    lines.extend_from_slice(b"\r\n");
    // Two bytes for each crumb, the blank and the CR LF of each line, and Host come on top of what HTTP/2 counts.
    let head_bytes_max = limits.head_bytes_max + 2 * CRUMBS_MAX + 1024;
    let wide = HeadLimits { head_bytes_max, fields_max: FIELDS_CAP, ..*limits };
    let mut old = RequestHead::parse(&lines, &wide).unwrap();
    assert_eq!(old.fields().collect::<Vec<_>>(), fields);
    if head.framing == BodyFraming::Frames {
        assert_eq!(old.framing, BodyFraming::None);
        (old.framing, old.expects_continue) = (head.framing, head.expects_continue);
    }
    (old.version, old.line) = (Version::Http2, head.line);
    assert_eq!(format!("{old:?}"), format!("{head:?}"));
}

/// Input: lines of a head. The block has its fields, without those of a connection, and the date where it says.
pub fn response_head(input: &[u8]) {
    let mut lines = b"HTTP/1.1 200 OK\r\n".to_vec();
    let mut expected = vec![(b":status".to_vec(), b"200".to_vec())];
    for line in input.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if !baton_http::field_name_is_safe(name) || !baton_http::field_value_is_safe(value) {
            continue;
        }
        lines.extend_from_slice(&[name, b": ", value, b"\r\n"].concat());
        let name = name.to_ascii_lowercase();
        let dropped = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
        if !dropped.iter().any(|other| other.as_bytes() == name) {
            expected.push((name, value.to_vec()));
        }
    }
    lines.extend_from_slice(b"\r\n");
    let mut block = Vec::new();
    let date_at = encode_response_head(&lines, &mut block);
    let (mut decoder, mut scratch, mut read) = (Decoder::new(), Vec::new(), Vec::new());
    let mut fields = decoder.fields(&block, &mut scratch);
    while let Some(field) = fields.next_field().unwrap() {
        read.push((field.name.to_vec(), field.value.to_vec()));
    }
    assert_eq!(read, expected);
    let date = expected.iter().rfind(|(name, value)| name == b"date" && value.len() == Stamp::DATE_LEN);
    assert_eq!(date_at.map(|at| &block[at..at + Stamp::DATE_LEN]), date.map(|(_, value)| &value[..]));
}
