//! Which documents may ever move: by media type and by path.

/// What the operator allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Media types that may come from another origin: `image/*`, `application/pdf`.
    pub types: Vec<String>,
    /// Whether pages may.
    pub pages: bool,
    /// Globs of paths that never move: well-known entry points, and what scripts read.
    pub entry_points: Vec<String>,
}

impl Rules {
    /// Whether a document with that path, which begins with a slash, may move.
    pub fn allow(&self, path: &str, media_type: &str) -> bool {
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        let is_allowed = match is_page(essence) {
            true => self.pages,
            false => self.types.iter().any(|pattern| matches(pattern.as_bytes(), essence.as_bytes())),
        };
        is_allowed && !self.entry_points.iter().any(|pattern| matches(pattern.as_bytes(), path.as_bytes()))
    }
}

/// Whether documents of that type have links that are read and replaced.
pub fn is_page(media_type: &str) -> bool {
    media_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/html")
}

/// Bytes of the longest page whose links are read, and replaced.
pub const PAGE_BYTES_MAX: u64 = 4 << 20;

/// Whether a glob matches: `*` is any run of bytes, `?` any one.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut in_pattern) = (0, 0);
    // Where to go on if the rest does not match: behind the last star, one byte later.
    let mut again = None;
    while at < text.len() {
        match pattern.get(in_pattern) {
            Some(b'*') => {
                again = Some((in_pattern + 1, at));
                in_pattern += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[at] => {
                at += 1;
                in_pattern += 1;
            }
            _ => match &mut again {
                Some((start, from)) => {
                    *from += 1;
                    (in_pattern, at) = (*start, *from);
                }
                None => return false,
            },
        }
    }
    pattern[in_pattern..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_paths_decide() {
        let rules = Rules {
            types: vec!["image/*".into(), "application/pdf".into()],
            pages: false,
            entry_points: vec!["/".into(), "/logo.*".into(), "/api/*".into()],
        };
        assert!(rules.allow("/a.png", "image/png"));
        assert!(rules.allow("/a.pdf", "application/pdf; x=y"));
        for (path, media_type) in [
            ("/a.js", "text/javascript"),
            ("/a.html", "text/html"),
            ("/logo.png", "image/png"),
            ("/api/x", "image/x"),
        ] {
            assert!(!rules.allow(path, media_type), "{path}");
        }
        assert!(Rules { pages: true, ..rules.clone() }.allow("/a.html", "text/html; charset=utf-8"));
        assert!(!Rules { pages: true, ..rules }.allow("/", "text/html"));
    }

    #[test]
    fn globs() {
        for (pattern, text, does) in [
            ("a*c", "abbc", true),
            ("a*c", "abcb", false),
            ("*", "", true),
            ("?", "", false),
            ("*b*b", "abab", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), does, "{pattern} {text}");
        }
    }
}
