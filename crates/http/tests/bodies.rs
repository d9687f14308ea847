//! Goal: a body ends where its framing says, in any pieces, and ambiguous framing is refused. Method: tables, and
//! every body cut anywhere against itself in one piece.

use baton_http::{BodyFraming, BodyReader, BodyStep, EXTENSION_BYTES_MAX, Refusal, TRAILER_BYTES_MAX};
use proptest::prelude::*;

/// Reads `input` in pieces that end at `cuts`: the content, and how many bytes were consumed if it ended.
fn read(framing: BodyFraming, input: &[u8], cuts: &[usize]) -> Result<(Vec<u8>, Option<usize>), Refusal> {
    let mut reader = BodyReader::new(framing);
    let mut content = Vec::new();
    let mut start = 0;
    for end in cuts.iter().copied().chain([input.len()]) {
        loop {
            match reader.read(&input[start..end])? {
                BodyStep::Data { consumed, data } => {
                    assert!(!data.is_empty());
                    content.extend_from_slice(data);
                    start += consumed;
                }
                BodyStep::NeedMore { consumed } => {
                    assert_eq!(start + consumed, end, "nothing is left behind");
                    assert!(!reader.is_finished());
                    start = end;
                    break;
                }
                BodyStep::End { consumed } => {
                    assert!(reader.is_finished());
                    assert_eq!(reader.read(b"next"), Ok(BodyStep::End { consumed: 0 }));
                    return Ok((content, Some(start + consumed)));
                }
            }
        }
    }
    Ok((content, None))
}

fn chunked(input: &str) -> Result<(Vec<u8>, Option<usize>), Refusal> {
    read(BodyFraming::Chunked, input.as_bytes(), &[])
}

#[test]
fn bytes_after_a_body_are_not_consumed() {
    for (framing, input, content, consumed) in [
        (BodyFraming::None, "GET", "", Some(0)),
        (BodyFraming::Length(0), "GET", "", Some(0)),
        (BodyFraming::Length(5), "helloGET", "hello", Some(5)),
        (BodyFraming::Length(5), "hell", "hell", None),
        (BodyFraming::Length(u64::MAX), "hello", "hello", None),
        (BodyFraming::Chunked, "5\r\nhello\r\n0\r\n\r\nGET", "hello", Some(15)),
    ] {
        let expected = Ok((content.as_bytes().to_vec(), consumed));
        assert_eq!(read(framing, input.as_bytes(), &[]), expected, "{framing:?} {input:?}");
    }
}

#[test]
fn chunks_are_joined_and_extensions_and_trailers_discarded() {
    for (input, content) in [
        ("0\r\n\r\n", ""),
        ("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world"),
        ("00000000000000a\r\n0123456789\r\n000\r\n\r\n", "0123456789"),
        ("A\r\n0123456789\r\n0\r\n\r\n", "0123456789"),
        ("1;a=b;c=\"d e\";\r\nx\r\n0;z\r\n\r\n", "x"),
        ("1 \t;a\r\nx\r\n0\r\n\r\n", "x"),
        ("1\r\nx\r\n0\r\nTrailer: y\r\nB:\r\nC: \u{e9}\t \r\n\r\n", "x"),
        ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n"),
    ] {
        assert_eq!(chunked(input), Ok((content.as_bytes().to_vec(), Some(input.len()))), "{input:?}");
    }
}

#[test]
fn ambiguous_framing_is_refused() {
    for (input, refusal) in [
        ("\r\n", Refusal::ChunkSize),
        ("g\r\n", Refusal::ChunkSize),
        (" 5\r\n", Refusal::ChunkSize),
        ("5 \r\n", Refusal::ChunkSize),
        ("5 x\r\n", Refusal::ChunkSize),
        ("+5\r\n", Refusal::ChunkSize),
        ("-5\r\n", Refusal::ChunkSize),
        ("0x5\r\n", Refusal::ChunkSize),
        ("5_0\r\n", Refusal::ChunkSize),
        (";a\r\n", Refusal::ChunkSize),
        ("5\nhello", Refusal::ChunkSize),
        ("5\rhello", Refusal::ChunkSize),
        ("10000000000000000\r\n", Refusal::ChunkSize),
        ("00000000000000000\r\n", Refusal::ChunkSize),
        ("5;a\nhello", Refusal::ChunkExtension),
        ("5;a\0\r\nhello", Refusal::ChunkExtension),
        ("5;a\rx\nhello", Refusal::ChunkSize),
        ("5\r\nhelloX\r\n", Refusal::ChunkEnd),
        ("5\r\nhello\n0\r\n\r\n", Refusal::ChunkEnd),
        ("5\r\nhello\rX", Refusal::ChunkEnd),
        ("5\r\nhello0\r\n\r\n", Refusal::ChunkEnd),
        ("0\r\n\n", Refusal::TrailerInvalid),
        ("0\r\n\rX", Refusal::TrailerInvalid),
        ("0\r\n: x\r\n\r\n", Refusal::TrailerInvalid),
        ("0\r\nA\r\n\r\n", Refusal::TrailerInvalid),
        ("0\r\nA : x\r\n\r\n", Refusal::TrailerInvalid),
        ("0\r\n A: x\r\n\r\n", Refusal::TrailerInvalid),
        ("0\r\nA: x\n\r\n", Refusal::TrailerInvalid),
        ("0\r\nA: x\rB: y\r\n\r\n", Refusal::TrailerInvalid),
        ("0\r\nA: x\0\r\n\r\n", Refusal::TrailerInvalid),
        ("0\r\nA: x\r\n folded\r\n\r\n", Refusal::TrailerInvalid),
    ] {
        assert_eq!(chunked(input), Err(refusal), "{input:?}");
    }
}

#[test]
fn the_largest_size_does_not_overflow() {
    assert_eq!(chunked("ffffffffffffffff\r\nx"), Ok((b"x".to_vec(), None)));
}

#[test]
fn extensions_and_trailers_are_bounded_over_the_whole_body() {
    let extended = |bytes: usize| {
        let half = bytes / 2;
        format!("1;{}\r\nx\r\n0;{}\r\n\r\n", "a".repeat(half - 1), "b".repeat(bytes - half - 1))
    };
    assert!(chunked(&extended(EXTENSION_BYTES_MAX)).is_ok());
    assert_eq!(chunked(&extended(EXTENSION_BYTES_MAX + 1)), Err(Refusal::ChunkExtension));
    let blanks = format!("1{};\r\n", " ".repeat(EXTENSION_BYTES_MAX));
    assert_eq!(chunked(&blanks), Err(Refusal::ChunkExtension));

    let trailed = |bytes: usize| format!("0\r\nA:\r\nB:{}\r\n\r\n", "b".repeat(bytes - "A:..B:..".len()));
    assert!(chunked(&trailed(TRAILER_BYTES_MAX)).is_ok());
    assert_eq!(chunked(&trailed(TRAILER_BYTES_MAX + 1)), Err(Refusal::TrailerTooLarge));
}

proptest! {
    #[test]
    fn any_cutting_gives_what_one_piece_gives(
        chunks in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 1..20), "(;[ -~]{0,5})?"), 0..5),
        trailers in proptest::collection::vec("[A-Za-z]{1,5}: ?[!-~]{0,5}\r\n", 0..3),
        damage in proptest::option::weighted(0.5, (any::<proptest::sample::Index>(), any::<u8>())),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
    ) {
        let mut input = Vec::new();
        for (data, extension) in &chunks {
            input.extend_from_slice(format!("{:x}{extension}\r\n", data.len()).as_bytes());
            input.extend_from_slice(data);
            input.extend_from_slice(b"\r\n");
        }
        input.extend_from_slice(format!("0\r\n{}\r\n", trailers.concat()).as_bytes());
        let end = input.len();
        input.extend_from_slice(b"GET / HTTP/1.1\r\n");
        if let Some((place, byte)) = damage {
            let place = place.index(input.len());
            input[place] = byte;
        }
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(input.len())).collect();
        cuts.sort_unstable();

        let whole = read(BodyFraming::Chunked, &input, &[]);
        prop_assert_eq!(&read(BodyFraming::Chunked, &input, &cuts), &whole);
        let every_byte: Vec<_> = (1..input.len()).collect();
        prop_assert_eq!(&read(BodyFraming::Chunked, &input, &every_byte), &whole);
        if damage.is_none() {
            let content: Vec<_> = chunks.iter().flat_map(|(data, _)| data.clone()).collect();
            prop_assert_eq!(whole, Ok((content, Some(end))));
        }
    }
}
