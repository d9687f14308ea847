//! What may be at a path instead of the path itself: nginx's `try_files`.

use std::fmt;

/// The name of a file or a folder that may answer a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    before: String,
    /// Whether the path of the request stands between the two.
    has_path: bool,
    after: String,
}

/// Why a text names no candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadCandidate {
    /// The candidate begins neither with `/` nor with `$path`.
    Beginning,
    /// The candidate has another variable than one `$path`.
    Variable,
    /// The candidate has empty segments, `.` or `..`.
    Segments,
}

impl fmt::Display for BadCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Beginning => "expected `$path`, `$path/`, or a path that begins with `/`",
            Self::Variable => "only `$path` stands for something here, once",
            Self::Segments => "no file has empty segments, `.` or `..` in its path",
        })
    }
}

impl std::error::Error for BadCandidate {}

impl Candidate {
    /// Reads a path within the site, in which `$path` stands for the path of the request. With a `/` at its end it is a
    /// folder.
    ///
    /// # Errors
    /// It names nothing.
    pub fn parse(text: &str) -> Result<Self, BadCandidate> {
        let (before, rest, has_path) = match text.split_once("$path") {
            Some((before, rest)) => (before, rest, true),
            None => (text, "", false),
        };
        if before.contains('$') || rest.contains('$') {
            return Err(BadCandidate::Variable);
        }
        if !(before.starts_with('/') || before.is_empty() && has_path) {
            return Err(BadCandidate::Beginning);
        }
        let whole = [before, if has_path { "/x" } else { "" }, rest].concat();
        let segments: Vec<_> = whole.split('/').skip(1).collect();
        let last = segments.len() - 1;
        let is_bad = |(index, segment): (usize, &&str)| match *segment {
            "" => index != last,
            segment => segment == "." || segment == "..",
        };
        if segments.iter().enumerate().any(is_bad) {
            return Err(BadCandidate::Segments);
        }
        Ok(Self { before: before.to_owned(), has_path, after: rest.to_owned() })
    }

    /// The candidate as it was written.
    pub fn text(&self) -> String {
        format!("{}{}{}", self.before, if self.has_path { "$path" } else { "" }, self.after)
    }

    /// Whether it is a folder.
    pub(crate) fn is_folder(&self) -> bool {
        let end = if self.has_path { &self.after } else { &self.before };
        end.ends_with('/')
    }

    /// The name for a decoded path, neither with a slash in front. Of a folder, it ends as the path does. `None`: a folder
    /// was asked for, and this is a file.
    pub fn name(&self, path: &[u8]) -> Option<Vec<u8>> {
        let absolute = match self.has_path {
            false => self.before.clone().into_bytes(),
            true => {
                let asks_for_folder = path.is_empty() || path.ends_with(b"/");
                let after = match (self.after.as_str(), asks_for_folder) {
                    ("/", _) => "",
                    (after, true) => after.strip_prefix('/')?,
                    (after, false) => after,
                };
                [self.before.as_bytes(), b"/", path, after.as_bytes()].concat()
            }
        };
        Some(absolute[1..].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_names_in_the_tree() {
        for (text, path, name) in [
            ("$path", "a/b.txt", Some("a/b.txt")),
            ("$path", "a/", None),
            ("$path", "", None),
            ("$path/", "a", Some("a")),
            ("$path/", "a/", Some("a/")),
            ("$path/", "", Some("")),
            ("$path.html", "a", Some("a.html")),
            ("$path.html", "a/", None),
            ("$path/main.html", "a", Some("a/main.html")),
            ("$path/main.html", "a/", Some("a/main.html")),
            ("/cache$path.html", "a", Some("cache/a.html")),
            ("/x.html", "a", Some("x.html")),
        ] {
            let candidate = Candidate::parse(text).unwrap();
            let found = candidate.name(path.as_bytes());
            assert_eq!(found.as_deref(), name.map(str::as_bytes), "{text} {path}");
            assert_eq!(candidate.text(), text);
        }
        assert!(
            Candidate::parse("$path/").unwrap().is_folder() && Candidate::parse("/a/").unwrap().is_folder()
        );
        assert!(!Candidate::parse("$path").unwrap().is_folder());
    }

    #[test]
    fn what_names_nothing_is_refused() {
        for (text, why) in [
            ("a", BadCandidate::Beginning),
            ("", BadCandidate::Beginning),
            ("$uri", BadCandidate::Variable),
            ("$path$path", BadCandidate::Variable),
            ("/$1", BadCandidate::Variable),
            ("/../a", BadCandidate::Segments),
            ("/a//b", BadCandidate::Segments),
            ("$path/../a", BadCandidate::Segments),
        ] {
            assert_eq!(Candidate::parse(text), Err(why), "{text}");
        }
    }
}
