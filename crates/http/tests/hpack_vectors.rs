//! Goal: blocks of other encoders say what they are meant to say. Method: the public vectors of hpack-test-case
//! (`tests/hpack/README.md`); `BATON_HPACK_VECTORS` names another folder with more of them.

use baton_http::h2::hpack::Decoder;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn blocks_of_other_encoders() {
    let folder = std::env::var_os("BATON_HPACK_VECTORS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hpack"), PathBuf::from);
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the vectors are committed") {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "fields") {
            count += story(&path);
        }
    }
    assert!(count >= 700, "{count} blocks");
    println!("{count} blocks");
}

/// Decodes the blocks of one story, of each encoder. Returns how many there are.
fn story(path: &Path) -> usize {
    let fields = fs::read_to_string(path).unwrap();
    let blocks = fs::read_to_string(path.with_extension("blocks")).unwrap();
    let mut count = 0;
    for encoder in blocks.split_terminator("\n\n") {
        let mut lines = encoder.lines();
        let name = lines.next().unwrap();
        let (mut decoder, mut scratch) = (Decoder::new(), Vec::new());
        for (seq, expected) in fields.split("\n\n").enumerate() {
            let block = from_hex(lines.next().expect("a block for each list of fields"));
            let mut list = decoder.fields(&block, &mut scratch);
            for line in expected.lines() {
                let field = list.next_field().unwrap().unwrap();
                let text = [field.name, b"\t", field.value].concat();
                assert_eq!(String::from_utf8_lossy(&text), line, "{name}, block {seq} of {}", path.display());
            }
            assert_eq!(list.next_field(), Ok(None));
            count += 1;
        }
        assert_eq!(lines.next(), None);
    }
    count
}

fn from_hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a hexadecimal digit") as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
