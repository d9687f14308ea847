//! What holds for any body, however it is cut into pieces and wherever the encoder is flushed.

use std::io::Read;

use baton_compress::{Effort, Encoder, whole};
use baton_http::Coding;
use proptest::prelude::*;

fn decode(coding: Coding, coded: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    match coding {
        Coding::Gzip => flate2::read::GzDecoder::new(coded).read_to_end(&mut decoded),
        Coding::Brotli => brotli::Decompressor::new(coded, 4096).read_to_end(&mut decoded),
        Coding::Zstd => zstd::Decoder::new(coded).unwrap().read_to_end(&mut decoded),
        Coding::Identity => unreachable!("no encoder makes it"),
    }
    .unwrap();
    decoded
}

/// As much as the beginning of a coded body allows.
fn decode_beginning(coding: Coding, coded: &[u8]) -> Vec<u8> {
    let mut reader: Box<dyn Read + '_> = match coding {
        Coding::Gzip => Box::new(flate2::read::GzDecoder::new(coded)),
        Coding::Brotli => Box::new(brotli::Decompressor::new(coded, 4096)),
        Coding::Zstd => Box::new(zstd::Decoder::new(coded).unwrap()),
        Coding::Identity => unreachable!("no encoder makes it"),
    };
    let mut decoded = Vec::new();
    let mut byte = [0];
    while matches!(reader.read(&mut byte), Ok(1)) {
        decoded.push(byte[0]);
    }
    decoded
}

fn coding() -> impl Strategy<Value = Coding> {
    prop::sample::select(vec![Coding::Gzip, Coding::Brotli, Coding::Zstd])
}

fn effort() -> impl Strategy<Value = Effort> {
    prop::sample::select(vec![Effort::Once, Effort::Stream])
}

/// Pieces, and whether the encoder is flushed behind each.
fn pieces() -> impl Strategy<Value = Vec<(Vec<u8>, bool)>> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300),
        (any::<u8>(), 0_usize..5_000).prop_map(|(byte, len)| vec![byte; len]),
    ];
    prop::collection::vec((piece, any::<bool>()), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_body_is_decoded_to_itself(coding in coding(), effort in effort(), pieces in pieces()) {
        let mut encoder = Encoder::new(coding, effort).unwrap();
        let (mut body, mut coded) = (Vec::new(), Vec::new());
        for (piece, is_flushed) in &pieces {
            encoder.write(piece).unwrap();
            body.extend_from_slice(piece);
            if *is_flushed {
                encoder.flush().unwrap();
                coded.extend(encoder.take());
                prop_assert!(decode_beginning(coding, &coded) == body, "a flush leaves nothing behind");
            }
            coded.extend(encoder.take());
        }
        coded.extend(encoder.finish().unwrap());
        prop_assert!(decode(coding, &coded) == body);
    }

    #[test]
    fn a_whole_body_becomes_shorter_or_stays(coding in coding(), body in prop::collection::vec(0_u8..4, 0..4_000)) {
        match whole(coding, &body, Effort::Once) {
            Some(coded) => {
                prop_assert!(coded.len() < body.len());
                prop_assert!(decode(coding, &coded) == body);
            }
            None => prop_assert!(body.len() < 100, "{} bytes of four kinds", body.len()),
        }
    }
}

#[test]
fn identity_has_no_encoder() {
    assert!(Encoder::new(Coding::Identity, Effort::Stream).is_err());
}
