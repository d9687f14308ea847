//! Chunks of a body (RFC 9112 section 7.1).

/// Appends the head of a chunk of `len` bytes, which is not 0; a CR LF follows the bytes.
pub fn push_chunk_head(out: &mut Vec<u8>, len: u64) {
    let digits = (u64::BITS - len.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(len >> (4 * digit)) as usize & 0xf]);
    }
    out.extend_from_slice(b"\r\n");
}

/// The end of a chunked body.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_have_their_length_in_front() {
        for len in [1, 9, 10, 15, 16, 255, 256, 65_535, 1 << 20, u64::MAX] {
            let mut out = Vec::new();
            push_chunk_head(&mut out, len);
            assert_eq!(out, format!("{len:x}\r\n").as_bytes());
        }
    }
}
