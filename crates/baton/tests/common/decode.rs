//! What a client makes of a coded body, all of it or its beginning.

use std::io::Read;

/// Decodes a whole body.
pub(crate) fn decode(coding: &str, body: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::new();
    match coding {
        "gzip" => flate2::read::GzDecoder::new(body).read_to_end(&mut decoded),
        "br" => brotli::Decompressor::new(body, 4096).read_to_end(&mut decoded),
        "zstd" => zstd::Decoder::new(body).expect("a decoder").read_to_end(&mut decoded),
        other => panic!("{other}"),
    }
    .unwrap_or_else(|error| panic!("{coding}: {error} after {} bytes", decoded.len()));
    decoded
}

/// Decodes as much as the beginning of a body allows.
pub(crate) fn decode_beginning(coding: &str, body: &[u8]) -> Vec<u8> {
    let mut reader: Box<dyn Read + '_> = match coding {
        "gzip" => Box::new(flate2::read::GzDecoder::new(body)),
        "br" => Box::new(brotli::Decompressor::new(body, 4096)),
        "zstd" => Box::new(zstd::Decoder::new(body).expect("a decoder")),
        other => panic!("{other}"),
    };
    let mut decoded = Vec::new();
    let mut byte = [0];
    while matches!(reader.read(&mut byte), Ok(1)) {
        decoded.push(byte[0]);
    }
    decoded
}
