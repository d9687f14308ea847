//! Where a chunked body ends (RFC 9112, section 7.1).

/// The place in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunks {
    /// In the digits of a chunk's size.
    Size { value: u64, digits: u8 },
    /// Behind them, up to the end of the line.
    Extension { value: u64 },
    /// In a chunk, with so many bytes to come.
    Data { left: u64 },
    /// Behind it.
    DataEnd,
    /// In the fields behind the last chunk, so many bytes from the beginning of a line.
    Trailer { line_bytes: u64 },
    /// Behind the body.
    End,
}

impl Chunks {
    /// The beginning of a body.
    pub(super) const START: Self = Self::Size { value: 0, digits: 0 };

    /// Takes bytes from the connection, and passes those of the body on. `None`: that is no chunked body, or there is more
    /// behind its end.
    pub(super) fn take(&mut self, mut bytes: &[u8], mut body: impl FnMut(&[u8])) -> Option<()> {
        while let Some((&byte, rest)) = bytes.split_first() {
            if let Self::Data { left } = *self {
                let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                body(&bytes[..here]);
                bytes = &bytes[here..];
                let left = left - here as u64;
                *self = if left > 0 { Self::Data { left } } else { Self::DataEnd };
                continue;
            }
            bytes = rest;
            *self = match (*self, byte) {
                (Self::Size { digits: 1.., value }, b'\n') => Self::behind_size(value),
                (Self::Size { digits: 1.., value }, b'\r' | b';') => Self::Extension { value },
                (Self::Size { value, digits: digits @ 0..DIGITS_MAX }, _) => {
                    let digit = char::from(byte).to_digit(16)?;
                    Self::Size { value: value << 4 | u64::from(digit), digits: digits + 1 }
                }
                (Self::Extension { value }, b'\n') => Self::behind_size(value),
                (Self::Extension { value }, _) => Self::Extension { value },
                (Self::DataEnd, b'\r') => Self::DataEnd,
                (Self::DataEnd, b'\n') => Self::START,
                (Self::Trailer { line_bytes: 0 }, b'\n') => Self::End,
                (Self::Trailer { .. }, b'\n') => Self::Trailer { line_bytes: 0 },
                (Self::Trailer { line_bytes }, b'\r') => Self::Trailer { line_bytes },
                (Self::Trailer { line_bytes }, _) => Self::Trailer { line_bytes: line_bytes + 1 },
                (Self::Size { .. } | Self::Data { .. } | Self::DataEnd | Self::End, _) => return None,
            };
        }
        Some(())
    }

    fn behind_size(value: u64) -> Self {
        if value > 0 { Self::Data { left: value } } else { Self::Trailer { line_bytes: 0 } }
    }
}

/// Digits of a size that no chunk of a measurement exceeds.
const DIGITS_MAX: u8 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    /// The body, and whether it has ended, however the bytes come.
    fn taken(bytes: &[u8], step: usize) -> Option<(Vec<u8>, bool)> {
        let (mut chunks, mut body) = (Chunks::START, Vec::new());
        for part in bytes.chunks(step) {
            chunks.take(part, |bytes| body.extend_from_slice(bytes))?;
        }
        Some((body, chunks == Chunks::End))
    }

    #[test]
    fn a_body_ends_behind_its_last_chunk_and_trailers() {
        let bytes = b"5\r\nhello\r\nA;x=y\r\n, you out \r\n0\r\nX-Sum: 1\r\n\r\n";
        for step in 1..bytes.len() {
            assert_eq!(taken(bytes, step), Some((b"hello, you out ".to_vec(), true)), "{step}");
        }
        assert_eq!(taken(&bytes[..bytes.len() - 1], 7), Some((b"hello, you out ".to_vec(), false)));
    }

    #[test]
    fn what_is_no_chunked_body_is_refused() {
        for bytes in [&b"\r\n"[..], b"g\r\n", b"1\r\nab\r\n", b"0\r\n\r\nHTTP/1.1", b"1000000000000\r\n"] {
            assert_eq!(taken(bytes, bytes.len()), None, "{}", bytes.escape_ascii());
        }
    }
}
