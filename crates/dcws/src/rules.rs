//! Which documents may ever move: by media type and by path.

use baton_http::is_media_type;
use baton_pattern::Pattern;

/// What the operator allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Media types that may come from another origin: `image/*`, `application/pdf`.
    pub types: Vec<String>,
    /// Whether pages may.
    pub pages: bool,
    /// Globs of paths that never move: well-known entry points, and what scripts read.
    pub entry_points: Vec<Pattern>,
}

impl Rules {
    /// Whether a document with that path, which begins with a slash, may move.
    pub fn allow(&self, path: &str, media_type: &str) -> bool {
        self.allow_type(media_type)
            && !self.entry_points.iter().any(|pattern| pattern.matches(path.as_bytes()))
    }

    /// Whether documents of that type may move.
    pub fn allow_type(&self, media_type: &str) -> bool {
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        match is_page(essence) {
            true => self.pages,
            false => self.types.iter().any(|kind| is_media_type(essence, kind)),
        }
    }
}

/// Whether documents of that type have links that are read and replaced.
pub fn is_page(media_type: &str) -> bool {
    media_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/html")
}

/// Bytes of the longest page whose links are read, and replaced.
pub const PAGE_BYTES_MAX: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_paths_decide() {
        let rules = Rules {
            types: vec!["image/*".into(), "application/pdf".into()],
            pages: false,
            entry_points: ["/", "/logo.*", "/api/**"].map(|glob| Pattern::glob(glob).unwrap()).into(),
        };
        assert!(rules.allow("/a.png", "image/png"));
        assert!(rules.allow("/a.pdf", "application/pdf; x=y"));
        for (path, media_type) in [
            ("/a.js", "text/javascript"),
            ("/a.html", "text/html"),
            ("/logo.png", "image/png"),
            ("/api/x", "image/x"),
            ("/api/x/y", "image/x"),
        ] {
            assert!(!rules.allow(path, media_type), "{path}");
        }
        assert!(Rules { pages: true, ..rules.clone() }.allow("/a.html", "text/html; charset=utf-8"));
        assert!(!Rules { pages: true, ..rules }.allow("/", "text/html"));
    }
}
