//! The readers of `baton-fcgi`: each against itself with the input split elsewhere, and against a naive reader or the
//! writer.

use baton_fcgi::cgi::{BadHead, CgiHead, HEAD_BYTES_MAX, HeadReader, HeadStep};
use baton_fcgi::offer::{self, Client, Offer, Transport};
use baton_fcgi::params::{self, Params};
use baton_fcgi::record::{MANAGEMENT_ID, RecordHeader, RecordType};
use baton_fcgi::zero_copy::{NAME_BYTES_MAX, NAMES_MAX, NameMap};
use baton_fcgi::{Broken, RegionSlice, SLICES_MAX, application, response, scgi};
use baton_http::response::Framing;

/// Parts read from a stream; consecutive pieces of a stream are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen<P> {
    /// Bytes of a stream, by the type of its records.
    Bytes(RecordType, Vec<u8>),
    /// Anything else.
    Part(P),
    /// Slices of a region.
    Slices(Vec<RegionSlice>),
    /// Pairs, as they are encoded.
    Pairs(Vec<u8>),
}

/// All that was seen up to the end of the input, or to the error.
pub type Reading<P> = (Vec<Seen<P>>, Option<Broken>);

/// Appends bytes of a stream.
pub fn add_bytes<P>(seen: &mut Vec<Seen<P>>, kind: RecordType, bytes: &[u8]) {
    match seen.last_mut() {
        _ if bytes.is_empty() => {}
        Some(Seen::Bytes(last, before)) if *last == kind => before.extend_from_slice(bytes),
        _ => seen.push(Seen::Bytes(kind, bytes.to_vec())),
    }
}

/// The request whose answer is read.
pub const REQUEST_ID: u16 = 1;

/// Reads an answer from pieces that end at `cuts`, sorted, and at the end of the input.
pub fn read_response(input: &[u8], cuts: impl IntoIterator<Item = usize>) -> Reading<response::Part> {
    use response::Part;
    let mut reader = response::ResponseReader::new(REQUEST_ID);
    let mut seen = Vec::new();
    let mut start = 0;
    for end in cuts.into_iter().chain([input.len()]) {
        loop {
            let piece = &input[start..end];
            let (consumed, part) = match reader.read(piece) {
                Ok(read) => read,
                Err(broken) => return (seen, Some(broken)),
            };
            start += consumed;
            match part {
                Part::NeedMore => {
                    assert_eq!(start, end, "nothing is left behind");
                    break;
                }
                Part::Stdout(range) | Part::Stderr(range) if range.is_empty() || range.end != consumed => {
                    panic!("a piece of a stream has bytes, and is the last that was consumed");
                }
                Part::Stdout(range) => add_bytes(&mut seen, RecordType::Stdout, &piece[range]),
                Part::Stderr(range) => add_bytes(&mut seen, RecordType::Stderr, &piece[range]),
                Part::Slices => {
                    let slices: Vec<_> = reader.slices().collect();
                    assert!((1..=SLICES_MAX).contains(&slices.len()));
                    seen.push(Seen::Slices(slices));
                }
                Part::Values => seen.push(Seen::Pairs(reader.values().rest().to_vec())),
                part => seen.push(Seen::Part(part)),
            }
        }
    }
    (seen, None)
}

/// Reads requests from pieces that end at `cuts`, sorted, and at the end of the input. Each is answered as
/// soon as it has been read.
pub fn read_requests(input: &[u8], cuts: impl IntoIterator<Item = usize>) -> Reading<application::Part> {
    use application::Part;
    let mut reader = application::RequestReader::new();
    let mut seen = Vec::new();
    let mut start = 0;
    for end in cuts.into_iter().chain([input.len()]) {
        loop {
            let piece = &input[start..end];
            let (consumed, part) = match reader.read(piece) {
                Ok(read) => read,
                Err(broken) => return (seen, Some(broken)),
            };
            start += consumed;
            match part {
                Part::NeedMore => {
                    assert_eq!(start, end, "nothing is left behind");
                    break;
                }
                Part::Params(range) | Part::Stdin(range) if range.is_empty() || range.end != consumed => {
                    panic!("a piece of a stream has bytes, and is the last that was consumed");
                }
                Part::Params(range) => add_bytes(&mut seen, RecordType::Params, &piece[range]),
                Part::Stdin(range) => add_bytes(&mut seen, RecordType::Stdin, &piece[range]),
                Part::Slices => {
                    let slices: Vec<_> = reader.slices().collect();
                    assert!((1..=SLICES_MAX).contains(&slices.len()));
                    seen.push(Seen::Slices(slices));
                }
                Part::GetValues => seen.push(Seen::Pairs(reader.names().rest().to_vec())),
                part => {
                    if part == Part::StdinEnd {
                        reader.finish();
                    }
                    seen.push(Seen::Part(part));
                }
            }
        }
    }
    (seen, None)
}

/// The records of a stream, the last one perhaps truncated: header, available content, and whether it is complete.
fn records(input: &[u8]) -> impl Iterator<Item = (RecordHeader, &[u8], bool)> {
    let mut rest = input;
    std::iter::from_fn(move || {
        let (header, behind) = rest.split_first_chunk::<8>()?;
        let header = RecordHeader::parse(header).ok()?;
        assert_eq!(RecordHeader::parse(&header.to_bytes()), Ok(header));
        let content_len = usize::from(header.content_len);
        let record_len = content_len + usize::from(header.padding_len);
        let content = &behind[..content_len.min(behind.len())];
        rest = behind.get(record_len..).unwrap_or_default();
        Some((header, content, behind.len() >= record_len))
    })
}

fn bytes_of<P>(seen: &[Seen<P>], wanted: RecordType) -> Vec<u8> {
    let bytes = seen.iter().filter_map(|seen| match seen {
        Seen::Bytes(kind, bytes) if *kind == wanted => Some(&bytes[..]),
        _ => None,
    });
    bytes.collect::<Vec<_>>().concat()
}

/// An answer reads the same in any pieces, and its streams are those that a naive reader finds.
pub fn response(input: &[u8]) {
    let whole = read_response(input, []);
    assert_eq!(whole, read_response(input, 1..input.len().max(1)), "byte by byte");
    assert_eq!(whole, read_response(input, (7..input.len()).step_by(7)), "in pieces");
    let (seen, broken) = whole;
    let ends = seen.iter().filter(|seen| matches!(seen, Seen::Part(response::Part::End { .. }))).count();
    assert!(ends <= 1);
    if broken.is_none() {
        for stream in [RecordType::Stdout, RecordType::Stderr] {
            let of_stream = records(input)
                .filter(|(header, ..)| (header.kind, header.request_id) == (stream as u8, REQUEST_ID))
                .map(|(_, content, _)| content);
            assert_eq!(bytes_of(&seen, stream), of_stream.collect::<Vec<_>>().concat());
        }
        let ended = records(input).filter(|(header, _, whole)| {
            *whole && (header.kind, header.request_id) == (RecordType::EndRequest as u8, REQUEST_ID)
        });
        assert_eq!(ended.count(), ends);
    }
}

/// Requests read the same in any pieces; records that belong to none are skipped.
pub fn application(input: &[u8]) {
    let whole = read_requests(input, []);
    assert_eq!(whole, read_requests(input, 1..input.len().max(1)), "byte by byte");
    assert_eq!(whole, read_requests(input, (7..input.len()).step_by(7)), "in pieces");
    let (seen, broken) = whole;
    let count = |wanted: fn(&application::Part) -> bool| {
        seen.iter().filter(|seen| matches!(seen, Seen::Part(part) if wanted(part))).count()
    };
    let begun = count(|part| matches!(part, application::Part::Begin { .. }));
    let params_read = count(|part| *part == application::Part::ParamsEnd);
    let read = count(|part| *part == application::Part::StdinEnd);
    assert!(read <= params_read && params_read <= begun && begun <= read + 1);
    if broken.is_none() {
        let unknown = records(input).filter(|(header, _, whole)| {
            *whole && header.request_id == MANAGEMENT_ID && header.kind != RecordType::GetValues as u8
        });
        assert_eq!(unknown.count(), count(|part| matches!(part, application::Part::UnknownType(_))));
    }
}

/// Pairs that were read are written so that they read the same, and not longer.
pub fn params(input: &[u8]) {
    let mut again = Vec::new();
    let mut pairs = Vec::new();
    for pair in Params::new(input) {
        let Ok((name, value)) = pair else {
            return;
        };
        params::push(&mut again, name, value);
        pairs.push((name, value));
    }
    assert!(again.len() <= input.len());
    assert_eq!(Params::new(&again).collect::<Result<Vec<_>, _>>(), Ok(pairs));
}

/// A request in SCGI reads back: a netstring of the length, the version and all other pairs. Input: eight bytes for
/// the body's length, then a block of pairs.
pub fn scgi(input: &[u8]) {
    let Some((length, block)) = input.split_first_chunk() else {
        return;
    };
    let length = u64::from_be_bytes(*length);
    let replaced = |name: &[u8]| [&b"CONTENT_LENGTH"[..], b"SCGI"].contains(&name);
    let pairs: Option<Vec<_>> = Params::new(block)
        .map(|pair| {
            pair.ok()
                .filter(|(name, value)| replaced(name) || ![name, value].iter().any(|text| text.contains(&0)))
        })
        .collect();
    let mut request = b"before".to_vec();
    let pushed = scgi::push_request(&mut request, block, length);
    let Some(pairs) = pairs else {
        assert!(pushed.is_err() && request == b"before", "nothing is written partly");
        return;
    };
    assert_eq!(pushed, Ok(()));
    let text = &request[b"before".len()..];
    let colon = text.iter().position(|byte| *byte == b':').expect("a netstring");
    let bytes: usize = std::str::from_utf8(&text[..colon]).expect("digits").parse().expect("a number");
    let (content, end) = text[colon + 1..].split_at(bytes);
    assert_eq!(end, b",");
    let mut words = content.split(|byte| *byte == 0);
    let said: Vec<_> = std::iter::from_fn(|| Some((words.next()?, words.next()?))).collect();
    let length = length.to_string();
    let first = [(&b"CONTENT_LENGTH"[..], length.as_bytes()), (&b"SCGI"[..], &b"1"[..])];
    let expected: Vec<_> =
        first.into_iter().chain(pairs.into_iter().filter(|pair| !replaced(pair.0))).collect();
    assert_eq!(said, expected);
    assert_eq!(content.last(), Some(&0));
}

/// A head ends at the same byte in any pieces; the HTTP head made of it reads back. Input: a byte for the kind of
/// client, then the output of an application.
pub fn head(input: &[u8]) {
    let Some((flags, output)) = input.split_first() else {
        return;
    };
    let whole = read_head(output, output.len().max(1));
    assert_eq!(whole, read_head(output, 1), "byte by byte");
    assert_eq!(whole, read_head(output, 7), "in pieces");
    let Ok((head, body_at)) = whole else {
        return;
    };
    assert!(body_at <= HEAD_BYTES_MAX && (200..1000).contains(&head.status()));

    let client = Client { minor: flags & 1, keep: flags & 2 != 0, head: flags & 4 != 0 };
    let body_len = (flags & 8 != 0).then_some(u64::from(*flags));
    let framing = head.framing(body_len, client);
    let mut text = Vec::new();
    head.push_http_head(&mut text, framing, client, b"Date: now\r\nServer: baton\r\n");
    let mut slots = vec![httparse::EMPTY_HEADER; HEAD_BYTES_MAX];
    let mut read = httparse::Response::new(&mut slots);
    match read.parse(&text) {
        Ok(status) => assert_eq!(status, httparse::Status::Complete(text.len())),
        // It wants UTF-8 and less than HTTP allows in a phrase.
        Err(httparse::Error::Status) => return,
        Err(error) => panic!("{error}: {}", text.escape_ascii()),
    }
    assert_eq!(read.code, Some(head.status()));
    let fields: Vec<_> = read.headers.iter().map(|field| (field.name.as_bytes(), field.value)).collect();
    let forwarded: Vec<_> = head.forwarded().collect();
    assert_eq!(&fields[2..2 + forwarded.len()], forwarded);
    let (dropped, mut edited) = (forwarded.first().map(|field| field.0).unwrap_or(b"X"), Vec::new());
    let edits = [b"/", dropped, b"\r\n?", dropped, b": d\r\n?x-default: d\r\n"].concat();
    head.push_http_head(&mut edited, framing, client, &edits);
    let lines = |text: &[u8], name: &[u8]| {
        let lines = text.split(|byte| *byte == b'\n');
        let is_named =
            |line: &&[u8]| line.split(|byte| *byte == b':').next().unwrap().eq_ignore_ascii_case(name);
        lines.filter(is_named).count()
    };
    if !dropped.eq_ignore_ascii_case(b"x-default") {
        assert_eq!(lines(&edited, dropped), 1, "dropped as often as it came, then added once");
    }
    assert!(lines(&edited, b"x-default") >= 1 && edited.ends_with(b"\r\n\r\n"));
    let named =
        |name: &str| fields.iter().filter(|field| field.0.eq_ignore_ascii_case(name.as_bytes())).count();
    assert_eq!(named("Date"), 1);
    assert_eq!(named("Content-Length"), usize::from(matches!(framing, Framing::Length(_))));
    assert_eq!(named("Transfer-Encoding"), usize::from(framing == Framing::Chunked));
    assert!(client.minor == 1 || framing != Framing::Chunked);
    assert!(named("Connection") <= 1);
}

/// The head of an output that comes in pieces of this size, and where its body begins.
fn read_head(output: &[u8], piece_bytes: usize) -> Result<(CgiHead, usize), BadHead> {
    let mut reader = HeadReader::new(HEAD_BYTES_MAX);
    for (index, piece) in output.chunks(piece_bytes).enumerate() {
        match reader.read(piece) {
            Ok(HeadStep::NeedMore) => {}
            Ok(HeadStep::End { body_at }) => {
                let body_at = index * piece_bytes + body_at;
                assert_eq!(reader.text(), &output[..body_at]);
                return Ok((reader.finish()?, body_at));
            }
            Err(bad) => {
                assert_eq!(reader.text(), &output[..index * piece_bytes], "for sending it on as it is");
                return Err(bad);
            }
        }
    }
    Ok((reader.finish()?, output.len()))
}

/// A map of names is ordered and bounded, and can be written again.
pub fn zero_copy(input: &[u8]) {
    let Some(map) = NameMap::parse(input) else {
        return;
    };
    let names = map.names();
    assert!((1..=NAMES_MAX).contains(&names.len()));
    assert!(names.iter().all(|name| (1..=NAME_BYTES_MAX).contains(&name.len)));
    assert!(names.windows(2).all(|pair| pair[0].offset + pair[0].len <= pair[1].offset));
    let end = names[names.len() - 1].end();
    assert!(map.fits(end) && !map.fits(end - 1));
    let mut again = Vec::new();
    map.push(&mut again);
    assert_eq!(NameMap::parse(&again), Some(map));
}

/// An offer that was read can be written and reads the same.
pub fn offer(input: &[u8]) {
    let Ok(offer) = Offer::parse(input) else {
        return;
    };
    match offer.transport {
        Transport::PassFd(client) => assert!(client.minor <= 1),
        Transport::Shm(ring) => assert!(ring.at < ring.size && ring.free <= ring.size),
        Transport::Unknown => return,
    }
    let mut block = Vec::new();
    offer.push(&mut block);
    params::push(&mut block, b"NEXT", b"");
    let pairs: Vec<_> = Params::new(&block).collect::<Result<_, _>>().expect("what was written can be read");
    assert_eq!((pairs[0].0, pairs[1]), (offer::NAME.as_bytes(), (&b"NEXT"[..], &b""[..])));
    assert_eq!(Offer::parse(pairs[0].1), Ok(offer));
}
