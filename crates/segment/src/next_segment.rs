//! The segments behind one of a film, whose names count: `seg-0012.m4s`, `seg-0013.m4s`.

/// The target (path and query) of the segment `steps` behind this one. `None`: its name has no number in front of its
/// extension, or is that of a manifest, which names segments and is none.
///
/// The last number of the name counts, and keeps its width where zeros fill it.
pub fn next_segment(target: &[u8], steps: u64) -> Option<Vec<u8>> {
    let path = &target[..memchr::memchr(b'?', target).unwrap_or(target.len())];
    let name_at = memchr::memrchr(b'/', path)? + 1;
    let name = &path[name_at..];
    let dot = memchr::memrchr(b'.', name)?;
    let (stem, extension) = (&name[..dot], &name[dot + 1..]);
    // Digits behind `%` are no number.
    let is_segment = !extension.is_empty() && !is_manifest(extension) && !stem.contains(&b'%');
    let end = stem.iter().rposition(u8::is_ascii_digit).filter(|_| is_segment)? + 1;
    let begin = stem[..end].iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |before| before + 1);
    let width = end - begin;
    let number = std::str::from_utf8(&stem[begin..end]).ok()?.parse::<u64>().ok()?.checked_add(steps)?;
    let number = format!("{number:0width$}");
    Some([&target[..name_at + begin], number.as_bytes(), &target[name_at + end..]].concat())
}

fn is_manifest(extension: &[u8]) -> bool {
    [b"m3u8".as_slice(), b"mpd"].iter().any(|own| extension.eq_ignore_ascii_case(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(target: &str, steps: u64) -> Option<String> {
        next_segment(target.as_bytes(), steps).map(|next| String::from_utf8(next).unwrap())
    }

    #[test]
    fn the_last_number_of_a_name_counts() {
        for (target, behind) in [
            ("/film/seg-9.m4s", "/film/seg-10.m4s"),
            ("/film/seg-0009.m4s?token=1.2", "/film/seg-0010.m4s?token=1.2"),
            ("/v2/1080p/chunk-stream0-00099.m4s", "/v2/1080p/chunk-stream0-00100.m4s"),
            ("/film/99.ts", "/film/100.ts"),
            ("/film/seg12_hd.ts", "/film/seg13_hd.ts"),
        ] {
            assert_eq!(next(target, 1).as_deref(), Some(behind), "{target}");
        }
        assert_eq!(next("/film/seg-9.m4s", 3).as_deref(), Some("/film/seg-12.m4s"));
    }

    #[test]
    fn what_does_not_count_has_no_next_one() {
        for target in [
            "/film/",
            "/film/seg.m4s",
            "/film/7",
            "/film/7.",
            "/7/seg.ts",
            "/film/live7.m3u8",
            "/film/live7.MPD",
            "/film/a%2012.ts",
            "/film?seg=7.ts",
            "",
            "/film/18446744073709551615.ts",
            "/film/99999999999999999999.ts",
        ] {
            assert_eq!(next(target, 1), None, "{target}");
        }
    }
}
