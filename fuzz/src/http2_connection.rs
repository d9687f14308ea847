//! The HTTP/2 connection: any input in any pieces, with an owner that answers everything.

use baton_buf::{Aggregate, Piece, Slice};
use baton_http::HeadLimits;
use baton_http::h2::{
    Connection, Event, FRAME_BYTES_MAX, Framed, HeadText, PREFACE, Packer, Settings, StreamId,
};

/// Input: what a client sends behind the preface. Its meaning does not depend on its pieces, and what is answered is
/// whole frames; GOAWAY is the last one after an error.
pub fn connection(input: &[u8]) {
    let input = [PREFACE, input].concat();
    let whole = read(&input, input.len());
    assert_eq!(whole, read(&input, 1), "byte by byte");
    assert_eq!(whole, read(&input, 13), "in pieces");
    answer(&input);
}

/// The events of an input, DATA joined, and the word for its error.
fn read(input: &[u8], piece_bytes: usize) -> (Vec<String>, Option<&'static str>) {
    let mut connection = Connection::new(&Settings::default(), 0);
    let mut text = HeadText::default();
    let mut events: Vec<String> = Vec::new();
    let mut data: Option<(StreamId, Vec<u8>, bool)> = None;
    let (mut start, mut end) = (0, 0);
    while start < input.len() {
        let (count, event) =
            match connection.receive(&input[start..end], &mut text, &HeadLimits::default(), 0) {
                Ok(read) => read,
                Err(error) => {
                    events.extend(data.take().map(|data| format!("{data:?}")));
                    return (events, Some(error.label()));
                }
            };
        start += count;
        match event {
            Some(Event::Data { stream, data: bytes, ends }) => match &mut data {
                Some((same, joined, has_ended)) if *same == stream && !*has_ended => {
                    joined.extend_from_slice(bytes);
                    *has_ended = ends;
                }
                _ => {
                    events
                        .extend(data.replace((stream, bytes.to_vec(), ends)).map(|data| format!("{data:?}")));
                }
            },
            Some(event) => {
                events.extend(data.take().map(|data| format!("{data:?}")));
                events.push(format!("{event:?}"));
            }
            None if count == 0 => {
                assert!(end - start < FRAME_BYTES_MAX, "a frame that is there is read");
                if end == input.len() {
                    break;
                }
                end = input.len().min(end + piece_bytes);
            }
            None => {}
        }
    }
    events.extend(data.map(|data| format!("{data:?}")));
    (events, None)
}

/// Answers every request, some of them late, and checks what leaves.
fn answer(input: &[u8]) {
    let mut connection = Connection::new(&Settings::default(), 0);
    let (mut text, mut packer) = (HeadText::default(), Packer::new());
    let mut late: Vec<StreamId> = Vec::new();
    let mut start = 0;
    loop {
        let limits = HeadLimits::default();
        let Ok((count, event)) = connection.receive(&input[start..], &mut text, &limits, 0) else { break };
        start += count;
        match event {
            Some(Event::Request { stream, .. } | Event::Refused { stream, .. }) => {
                connection.respond(stream, Slice::from(vec![0x88]), false);
                push(&mut connection, stream, 3000 * stream.number() as usize % 40_000);
                late.push(stream);
            }
            Some(Event::Data { stream, data, .. }) => connection.consume(stream, data.len() as u64),
            Some(Event::Reset { stream, .. } | Event::Broken { stream, .. }) => connection.finish(stream),
            None if count == 0 => break,
            _ => {}
        }
        if start % 3 == 0 {
            transmit(&mut connection, &mut packer);
        }
        if late.len() > 5 || start % 5 == 0 {
            late.drain(..).for_each(|stream| end(&mut connection, stream));
        }
    }
    late.drain(..).for_each(|stream| end(&mut connection, stream));
    let last = transmit(&mut connection, &mut packer);
    assert!(!connection.has_failed() || (last == Some(GOAWAY) && connection.is_over()));
}

fn push(connection: &mut Connection, stream: StreamId, len: usize) {
    let mut body = Aggregate::new();
    body.push(Slice::from(vec![b'a'; len]));
    connection.push(stream, body);
}

fn end(connection: &mut Connection, stream: StreamId) {
    connection.end(stream);
    connection.finish(stream);
}

/// Frames all that may leave, and returns the type of the last frame.
fn transmit(connection: &mut Connection, packer: &mut Packer) -> Option<u8> {
    let mut last = None;
    while connection.wants_to_send() {
        let mut out = Aggregate::new();
        let mut accounted = 0;
        let ledger = &mut |framed: Framed| accounted += framed.total_bytes();
        connection.poll_transmit(&mut out, 20_000, packer, ledger, &mut |_, _| true);
        assert_eq!(accounted, out.len());
        assert!(accounted > 0, "something was wanted");
        let bytes: Vec<u8> = out.pieces().flat_map(in_memory).copied().collect();
        let mut rest = &bytes[..];
        while let Some(([a, b, c, kind, ..], tail)) = rest.split_first_chunk::<9>() {
            rest = &tail[u32::from_be_bytes([0, *a, *b, *c]) as usize..];
            last = Some(*kind);
        }
        assert!(rest.is_empty(), "whole frames");
    }
    last
}

fn in_memory(piece: &Piece) -> &[u8] {
    match piece {
        Piece::Memory(slice) => slice,
        Piece::Shared(_) | Piece::File(_) | Piece::Piped(_) => panic!("only memory was queued"),
    }
}

const GOAWAY: u8 = 7;
