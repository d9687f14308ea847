//! Where players of MP4 look next: at the index (`moov`), which many films have at their end.

/// Where the index of a film begins, if that is behind its media data. `start`: the film's first bytes. `None`: the index
/// comes first, or these are no boxes of MP4 (ISO/IEC 14496-12, section 4.2).
pub(crate) fn index_behind(start: &[u8]) -> Option<u64> {
    let mut at = 0;
    loop {
        let header = start.get(usize::try_from(at).ok()?..)?;
        let size = u32::from_be_bytes(header.get(..4)?.try_into().ok()?);
        let size = match size {
            // The size has 64 bits, behind the kind.
            1 => u64::from_be_bytes(header.get(8..16)?.try_into().ok()?),
            size => size.into(),
        };
        // Less is malformed, and 0 means up to the end.
        if size < 8 {
            return None;
        }
        let end = u64::checked_add(at, size)?;
        match header.get(4..8)? {
            b"mdat" => return Some(end),
            b"moov" => return None,
            _ => at = end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: &[u8; 4], size: u32) -> Vec<u8> {
        [&size.to_be_bytes()[..], kind].concat()
    }

    #[test]
    fn the_index_is_looked_for_behind_the_media_data() {
        let file_type = [header(b"ftyp", 12), vec![0; 4]].concat();
        let free = header(b"free", 8);
        let film = |rest: &[u8]| [&file_type[..], &free, rest].concat();
        assert_eq!(index_behind(&film(&header(b"mdat", 5000))), Some(5020));
        let long = [&header(b"mdat", 1)[..], &(1_u64 << 33).to_be_bytes()].concat();
        assert_eq!(index_behind(&film(&long)), Some((1 << 33) + 20));
        for rest in
            [&header(b"moov", 5000)[..], &header(b"mdat", 0), &header(b"mdat", 7), b"", b"\0\0\0\x01mdat"]
        {
            assert_eq!(index_behind(&film(rest)), None, "{rest:?}");
        }
        let endless = [&header(b"free", 1)[..], &u64::MAX.to_be_bytes()].concat();
        assert_eq!(index_behind(&film(&endless)), None);
        assert_eq!(index_behind(&[0; 100]), None);
    }
}
