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
    /// Why a document with that path, which begins with a slash, never moves; `None`: it may.
    pub fn keeps(&self, path: &str, media_type: &str) -> Option<Stays> {
        match self.allow_type(media_type) {
            false if is_page(media_type) => Some(Stays::Page),
            false => Some(Stays::Type),
            true => {
                let is_one = self.entry_points.iter().any(|pattern| pattern.matches(path.as_bytes()));
                is_one.then_some(Stays::EntryPoint)
            }
        }
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

/// Why a document may not move, as far as its file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    /// It is a page, and `pages` is off.
    Page,
    /// Its media type is none of `types`.
    Type,
    /// `entry_points` has its path.
    EntryPoint,
    /// It changed less than three seconds before the last look: workers may have the old bytes yet.
    Unsettled,
}

impl Stays {
    /// The reason, for operators.
    pub const fn told(self) -> &'static str {
        match self {
            Self::Page => "pages stay: `pages` is off",
            Self::Type => "its media type is none of `types`",
            Self::EntryPoint => "`entry_points` has its path",
            Self::Unsettled => "it has changed just now: the next look at the folder decides",
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
        assert_eq!(rules.keeps("/a.png", "image/png"), None);
        assert_eq!(rules.keeps("/a.pdf", "application/pdf; x=y"), None);
        for (path, media_type, why) in [
            ("/a.js", "text/javascript", Stays::Type),
            ("/a.html", "text/html", Stays::Page),
            ("/logo.png", "image/png", Stays::EntryPoint),
            ("/api/x", "image/x", Stays::EntryPoint),
            ("/api/x/y", "image/x", Stays::EntryPoint),
        ] {
            assert_eq!(rules.keeps(path, media_type), Some(why), "{path}");
        }
        let with_pages = Rules { pages: true, ..rules };
        assert_eq!(with_pages.keeps("/a.html", "text/html; charset=utf-8"), None);
        assert_eq!(with_pages.keeps("/", "text/html"), Some(Stays::EntryPoint));
    }
}
