//! The parsers of `baton-http`: each against a rule or a naive second reader.

use baton_http::{
    AcceptedCodings, BodyFraming, BodyReader, BodyStep, Coding, FileState, HeadLimits, HeadScanner, Method,
    PROXY_HEADER_BYTES_MAX, Precondition, Ranges, Refusal, RequestHead, Version, as_uri, decode_any_path,
    decode_path, multipart::Multipart, preferred_coding, read_proxy_header, select_ranges,
};

/// Heads end at the same byte in any pieces, and an accepted head is unambiguous.
pub fn request_head(input: &[u8]) {
    let end = HeadScanner::new().find_end(input);
    let mut scanner = HeadScanner::new();
    let in_pieces = (0..=input.len()).find_map(|length| scanner.find_end(&input[..length]));
    assert_eq!(end, in_pieces, "byte by byte");
    let Some(end) = end else {
        return;
    };
    let text = &input[..end];
    let limits = HeadLimits::default();
    let head = match RequestHead::parse(text, &limits) {
        Ok(head) => head,
        Err(refusal) => {
            assert_ne!(refusal, Refusal::HeadIncomplete, "a reason is found for every refusal");
            assert!((400..600).contains(&refusal.status().code()));
            return;
        }
    };

    // A reader that takes LF for the end of a line sees the lines that one sees that insists on CR LF.
    let lenient = text.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lenient, text.windows(2).filter(|pair| pair == b"\r\n").count());
    assert_eq!(text.iter().filter(|byte| **byte == b'\r').count(), lenient);

    // The result of a reader without minor versions above 1 and bytes above 0x7f in targets.
    let mut usual = text.to_vec();
    let line_start = text.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap();
    let (line, minor) = (line_start..line_start + head.line.len(), head.version == Version::Http11);
    usual[line.end - 1] = b'0' + u8::from(minor);
    usual[line].iter_mut().filter(|byte| !byte.is_ascii()).for_each(|byte| *byte = b'x');
    let mut slots = [httparse::EMPTY_HEADER; 128];
    let mut second = httparse::Request::new(&mut slots);
    assert_eq!(second.parse(&usual), Ok(httparse::Status::Complete(end)));
    let plain = |byte: &u8| if byte.is_ascii() { *byte } else { b'x' };
    assert_eq!(second.path.unwrap().as_bytes(), head.target.iter().map(plain).collect::<Vec<_>>());
    let fields: Vec<_> = second.headers.iter().map(|field| (field.name, field.value)).collect();
    assert_eq!(head.fields().collect::<Vec<_>>(), fields);

    let words: Vec<_> = head.line.split(|byte| *byte == b' ').collect();
    assert_eq!(words.len(), 3);
    assert!(words.iter().all(|word| !word.is_empty() && as_uri(word).iter().all(u8::is_ascii_graphic)));
    assert!(words[0].is_ascii() && words[2].is_ascii() && words[2].starts_with(b"HTTP/1."));
    match head.path {
        b"" => assert_eq!(head.method, Method::Connect),
        b"*" => assert_eq!(head.method, Method::Options),
        path => assert!(path[0] == b'/' && !path.contains(&b'?') && !path.contains(&b'#')),
    }
    if let Some(host) = head.host {
        assert!(!host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic()));
        assert!(!host.contains(['@', '/', '?', '#', '\\']));
    }
    let named = |name: &str| fields.iter().filter(|field| field.0.eq_ignore_ascii_case(name)).count();
    assert!(named("Host") <= 1 && (head.version == Version::Http10 || named("Host") == 1));
    let framed = match head.framing {
        BodyFraming::None => (0, 0),
        BodyFraming::Length(_) => (1, 0),
        BodyFraming::Chunked => (0, 1),
        BodyFraming::Frames => unreachable!("HTTP/1 has no frames"),
    };
    assert_eq!((named("Content-Length"), named("Transfer-Encoding")), framed);
    if let BodyFraming::Length(length) = head.framing {
        let text = head.field("Content-Length").unwrap();
        assert!(text.iter().all(u8::is_ascii_digit));
        assert_eq!(std::str::from_utf8(text).unwrap().parse(), Ok(length));
    }
    assert!(!head.expects_continue || (head.version == Version::Http11 && !head.framing.is_empty()));
    assert!(head.range.is_none() || head.method == Method::Get);

    // With bytes of its own it says the same.
    assert_eq!(format!("{:?}", head.keep().get()), format!("{head:?}"));
}

/// A chunked body has the same content in any pieces, and a naive reader finds the same.
pub fn chunked_body(input: &[u8]) {
    let whole = read_body(input, input.len());
    assert_eq!(whole, read_body(input, 1), "byte by byte");
    assert_eq!(whole, read_body(input, 7), "in pieces");
    if let Ok((content, Some(consumed))) = whole {
        assert_eq!(read_chunks_naively(input), Some((content, consumed)));
    }
}

/// The content of a chunked body that comes in pieces of this size, and how much of the input it took if it
/// ended.
fn read_body(input: &[u8], piece_bytes: usize) -> Result<(Vec<u8>, Option<usize>), Refusal> {
    let mut reader = BodyReader::new(BodyFraming::Chunked);
    let mut content = Vec::new();
    let mut start = 0;
    while start < input.len() {
        let piece = &input[start..input.len().min(start + piece_bytes)];
        match reader.read(piece)? {
            BodyStep::Data { consumed, data } => {
                assert!(!data.is_empty() && piece[..consumed].ends_with(data));
                content.extend_from_slice(data);
                start += consumed;
            }
            BodyStep::NeedMore { consumed } => {
                assert_eq!(consumed, piece.len());
                start += consumed;
            }
            BodyStep::End { consumed } => return Ok((content, Some(start + consumed))),
        }
    }
    Ok((content, reader.is_finished().then_some(start)))
}

/// Reads a complete chunked body with nothing but splitting at CR LF.
fn read_chunks_naively(input: &[u8]) -> Option<(Vec<u8>, usize)> {
    let line_at = |start: usize| {
        let length = input[start..].windows(2).position(|pair| pair == b"\r\n")?;
        Some((&input[start..start + length], start + length + 2))
    };
    let mut content = Vec::new();
    let mut at = 0;
    loop {
        let (line, data) = line_at(at)?;
        let size = line.split(|byte| *byte == b';').next()?;
        let size = u64::from_str_radix(std::str::from_utf8(size.trim_ascii_end()).ok()?, 16).ok()?;
        if size == 0 {
            at = data;
            break;
        }
        let end = data + usize::try_from(size).ok()?;
        content.extend_from_slice(input.get(data..end)?);
        assert_eq!(input.get(end..end + 2), Some(&b"\r\n"[..]));
        at = end + 2;
    }
    loop {
        let (trailer, next) = line_at(at)?;
        at = next;
        if trailer.is_empty() {
            return Some((content, at));
        }
    }
}

/// Input: the length of the representation (8 bytes), the most ranges (1 byte), the field. The selection is within
/// the representation, has no overlaps, and selects itself.
pub fn ranges(input: &[u8]) {
    let Some((length, [ranges_max, field @ ..])) = input.split_first_chunk::<8>() else {
        return;
    };
    let length = u64::from_le_bytes(*length);
    let ranges_max = usize::from(*ranges_max);
    let Ranges::Parts(list) = select_ranges(field, length, ranges_max) else {
        return;
    };
    assert!(field[..6].eq_ignore_ascii_case(b"bytes="));
    assert!((1..=ranges_max).contains(&list.len()));
    assert!(list.iter().all(|range| range.first <= range.last && range.last < length));
    let mut sorted = list.to_vec();
    sorted.sort_unstable_by_key(|range| range.first);
    assert!(sorted.windows(2).all(|pair| pair[0].last + 1 < pair[1].first), "a gap between any two");

    let specs: Vec<_> = list.iter().map(|range| format!("{}-{}", range.first, range.last)).collect();
    let again = format!("bytes={}", specs.join(","));
    assert_eq!(select_ranges(again.as_bytes(), length, ranges_max), Ranges::Parts(list.clone()));

    let multipart = Multipart { boundary: "b", media_type: "a/b", length };
    let mut around = Vec::new();
    for range in list.iter() {
        multipart.push_part_head(&mut around, *range);
    }
    multipart.push_tail(&mut around);
    let selected: u128 = list.iter().map(|range| u128::from(range.len())).sum();
    assert!(selected <= u128::from(length), "no byte twice");
    if let Ok(selected) = u64::try_from(selected + around.len() as u128) {
        assert_eq!(multipart.content_length(&list), selected);
    }
}

/// Input: lines of a digit that names a conditional field, and its value. Conditions change only what they can
/// change.
pub fn conditions(input: &[u8]) {
    const NAMES: [&str; 5] =
        ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"];
    const MODIFIED: u64 = 784_111_777;
    let etag = FileState { size: 3, modified: (1 << 30, 5), changed: (0, 0), inode: 2 }.etag();
    let mut text = b"GET / HTTP/1.1\r\nHost: x\r\n".to_vec();
    let mut used = [false; NAMES.len()];
    for line in input.split(|byte| *byte == b'\n') {
        let Some((kind, value)) = line.split_first() else {
            continue;
        };
        let kind = usize::from(kind.wrapping_sub(b'0')) % NAMES.len();
        used[kind] = true;
        text.extend_from_slice(NAMES[kind].as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value);
        text.extend_from_slice(b"\r\n");
    }
    let verdicts = |more: &[u8]| {
        let text = [&text, more, b"\r\n"].concat();
        let conditions = RequestHead::parse(&text, &HeadLimits::default()).ok()?.conditions;
        assert_eq!(conditions.is_empty(), more.is_empty() && used[..4] == [false; 4]);
        assert!(used[4] || conditions.range_applies(&etag, Some(MODIFIED), MODIFIED));
        // A validator that matches now keeps matching.
        let applies = |now| conditions.range_applies(&etag, Some(MODIFIED), now);
        assert!(!applies(MODIFIED) || applies(MODIFIED + 1));
        let evaluate = |method| conditions.evaluate(method, &etag, Some(MODIFIED));
        Some([Method::Get, Method::Head, Method::Put].map(evaluate))
    };
    let Some([get, head, put]) = verdicts(b"") else {
        return;
    };
    assert_eq!(get, head);
    assert_ne!(put, Precondition::NotModified);
    assert!(get != Precondition::Failed || put == Precondition::Failed);
    if used[..4] == [false; 4] {
        assert_eq!(get, Precondition::Proceed);
    }

    // With the current tag in the client's list nothing is sent again, for any other conditions.
    let tag_line = [b"If-None-Match: W/", etag.as_ref(), b"\r\n"].concat();
    if let Some([with_tag, _, put_with_tag]) = verdicts(&tag_line) {
        let expected =
            if get == Precondition::Failed { Precondition::Failed } else { Precondition::NotModified };
        assert_eq!(with_tag, expected);
        assert_eq!(put_with_tag, Precondition::Failed);
    }
}

/// A decoded path is below the root, plain, and decodes to itself when it is escaped again.
pub fn path(input: &[u8]) {
    let (mut path, mut any) = (b"left over".to_vec(), b"left over".to_vec());
    let plain_len = decode_any_path(input, &mut any);
    assert!(!any.contains(&0) && (plain_len.is_ok() || any.is_empty()));
    assert!(plain_len.is_err() || !any.split(|byte| *byte == b'/').any(|name| matches!(name, b"." | b"..")));
    if decode_path(input, &mut path).is_err() {
        assert!(path.is_empty());
        return;
    }
    assert_eq!((plain_len, &any), (Ok(path.len()), &path), "what can be a name, all read alike");
    assert!(path.len() < input.len());
    assert!(!path.iter().any(|byte| byte.is_ascii_control() || *byte == b'\\'));
    if !path.is_empty() {
        let names = path.strip_suffix(b"/").unwrap_or(&path);
        for name in names.split(|byte| *byte == b'/') {
            assert!(!matches!(name, b"" | b"." | b".."), "{path:?}");
        }
    }
    let mut escaped = b"/".to_vec();
    for byte in &path {
        match byte {
            b'/' => escaped.push(b'/'),
            _ => escaped.extend_from_slice(format!("%{byte:02x}").as_bytes()),
        }
    }
    let mut again = Vec::new();
    assert_eq!(decode_path(&escaped, &mut again), Ok(()));
    assert_eq!(again, path);
}

/// The accepted codings do not depend on the spelling, and can be written again.
pub fn accept_encoding(input: &[u8]) {
    let accepted = AcceptedCodings::parse(Some(input));
    let order: Vec<_> = accepted.in_order().collect();
    for coding in [Coding::Identity, Coding::Gzip, Coding::Brotli, Coding::Zstd] {
        let count = order.iter().filter(|other| **other == coding).count();
        assert_eq!(count, usize::from(accepted.accepts(coding)), "each once");
    }
    for spelling in
        [input.to_ascii_uppercase(), input.to_ascii_lowercase(), [b" ,,\t", input, b" , "].concat()]
    {
        assert_eq!(AcceptedCodings::parse(Some(&spelling)), accepted);
    }
    let mut again = String::from("*;q=0");
    for (rank, coding) in order.iter().enumerate() {
        again.push_str(&format!(", {};q=0.{}", coding.token(), 9 - rank));
    }
    assert_eq!(AcceptedCodings::parse(Some(again.as_bytes())), accepted);
    // With the same order among equals, what is made is what a copy would be chosen for.
    let offers = [Coding::Brotli, Coding::Zstd, Coding::Gzip];
    let best = order.first().copied().filter(|coding| *coding != Coding::Identity);
    assert_eq!(preferred_coding(Some(input), &offers), best);
}

/// Any bytes as the beginning of a load balancer's connection: the verdict on a beginning stands, whatever follows.
pub fn proxy_header(input: &[u8]) {
    let verdict = read_proxy_header(input);
    for end in 0..input.len() {
        match read_proxy_header(&input[..end]) {
            Ok(None) => assert!(end < PROXY_HEADER_BYTES_MAX, "it ends"),
            decided => {
                assert_eq!(decided, verdict);
                if let Ok(Some((_, len))) = decided {
                    assert_eq!(end, len, "as soon as it is complete");
                }
                return;
            }
        }
    }
}
