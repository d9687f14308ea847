//! Encodes fields without a table of its own: an index of the static table, or a literal that is not indexed and not compressed.

use super::{integer, static_table};

/// Appends `:status`. `code` is three digits.
pub(in crate::h2) fn push_status(out: &mut Vec<u8>, code: [u8; 3]) {
    let index = match &code {
        b"200" => 8,
        b"204" => 9,
        b"206" => 10,
        b"304" => 11,
        b"400" => 12,
        b"404" => 13,
        b"500" => 14,
        _ => {
            integer::push(out, NOT_INDEXED, 4, 8);
            return push_value(out, &code);
        }
    };
    integer::push(out, INDEXED, 7, index);
}

/// Appends a field's name, which becomes lower case. Its value follows.
pub(in crate::h2) fn push_name(out: &mut Vec<u8>, name: &[u8]) {
    let mut lower = [0; static_table::RESPONSE_NAME_LEN_MAX];
    if let Some(lower) = lower.get_mut(..name.len()) {
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        if let Some(index) = static_table::find_response_name(lower) {
            return integer::push(out, NOT_INDEXED, 4, index);
        }
    }
    out.push(NOT_INDEXED);
    integer::push(out, RAW, 7, name.len());
    let start = out.len();
    out.extend_from_slice(name);
    out[start..].make_ascii_lowercase();
}

/// Appends a value as it is. The Huffman code would take a sixth off a usual head, but costs the server half as much
/// again for each head that it encodes, and the client several times what decoding costs.
pub(in crate::h2) fn push_value(out: &mut Vec<u8>, value: &[u8]) {
    integer::push(out, RAW, 7, value.len());
    out.extend_from_slice(value);
}

/// What the first octets of representations and strings have above their numbers (RFC 7541 sections 5.2 and 6).
const INDEXED: u8 = 0x80;
const NOT_INDEXED: u8 = 0x00;
const RAW: u8 = 0x00;
