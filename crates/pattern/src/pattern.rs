//! Globs and regular expressions on paths. Both are matched in time linear in the path, and bounded in memory.
//!
//! Paths are bytes, of which not all are text, and an encoded line break is one of them. So a `.` stands for any byte here:
//! if it stood for a character on a line, `%0A` or `%FF` would lead around a pattern.

use std::fmt;

use regex::bytes::{Regex, RegexBuilder};

use super::glob;

/// A glob or a regular expression.
#[derive(Clone, Debug)]
pub struct Pattern {
    kind: Kind,
    text: String,
    regex: Regex,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Glob,
    Regex,
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPattern(String);

impl BadPattern {
    pub(crate) fn new(why: String) -> Self {
        Self(why)
    }
}

impl fmt::Display for BadPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadPattern {}

/// What the groups of a pattern have matched.
pub type Captures<'p> = regex::bytes::Captures<'p>;

impl Pattern {
    /// A glob on the decoded path, written as in a URL: `*` is any run of characters within a segment, `**` any run,
    /// `?` one character, `[a-z]` one of these, `[!a-z]` one of the others. With a leading `/` it must match the whole path,
    /// otherwise any tail of it after a `/`.
    ///
    /// # Errors
    /// It is none, or matches no path.
    pub fn glob(text: &str) -> Result<Self, BadPattern> {
        let regex = glob::to_regex(text).map_err(BadPattern)?;
        Self::compile(Kind::Glob, text, &regex)
    }

    /// A regular expression on the decoded path, of which it may match a part.
    ///
    /// # Errors
    /// It is none, is too large, or matches no path.
    pub fn regex(text: &str) -> Result<Self, BadPattern> {
        let mut parser =
            regex_syntax::ParserBuilder::new().unicode(false).utf8(false).nest_limit(DEPTH_MAX).build();
        let parsed = parser.parse(text).map_err(|error| {
            BadPattern(match error {
                regex_syntax::Error::Parse(error) => error.kind().to_string(),
                regex_syntax::Error::Translate(error) => error.kind().to_string(),
                other => other.to_string(),
            })
        })?;
        if begins_otherwise(&parsed) {
            return Err(BadPattern("it matches no path: every path begins with `/`".into()));
        }
        Self::compile(Kind::Regex, text, text)
    }

    fn compile(kind: Kind, text: &str, regex: &str) -> Result<Self, BadPattern> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(BadPattern(format!("it has more than {TEXT_BYTES_MAX} bytes")));
        }
        let regex = RegexBuilder::new(regex)
            .unicode(false)
            .dot_matches_new_line(true)
            .size_limit(PROGRAM_BYTES_MAX)
            .dfa_size_limit(CACHE_BYTES_MAX)
            .nest_limit(DEPTH_MAX)
            .build();
        let regex = regex.map_err(compile_error)?;
        Ok(Self { kind, text: text.to_owned(), regex })
    }

    /// The pattern as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// `glob` or `regex`.
    pub fn kind(&self) -> &'static str {
        match self.kind {
            Kind::Glob => "glob",
            Kind::Regex => "regex",
        }
    }

    /// Whether it matches a decoded path, which begins with a slash.
    pub fn matches(&self, path: &[u8]) -> bool {
        self.regex.is_match(path)
    }

    /// What its groups match in such a path.
    pub fn captures<'p>(&self, path: &'p [u8]) -> Option<Captures<'p>> {
        self.regex.captures(path)
    }

    /// Whether it has a group with this number or name.
    pub fn has_group(&self, name: &str) -> bool {
        match name.parse::<usize>() {
            Ok(number) => number < self.regex.captures_len(),
            Err(_) => self.group_names().any(|own| own == name),
        }
    }

    /// The names of its groups, in order; of one without, its number.
    pub fn groups(&self) -> impl Iterator<Item = String> {
        let names = self.regex.capture_names().enumerate().skip(1);
        names.map(|(number, name)| name.map_or_else(|| number.to_string(), str::to_owned))
    }

    fn group_names(&self) -> impl Iterator<Item = &str> {
        self.regex.capture_names().flatten()
    }

    /// The path of a glob that matches no other.
    pub fn only_path(&self) -> Option<&str> {
        let is_plain = self.text.starts_with('/') && !self.text.contains(['*', '?', '[', '%']);
        (self.kind == Kind::Glob && is_plain).then_some(&self.text)
    }

    /// Whether it matches every path there can be, as far as paths of every kind can tell.
    pub fn matches_everything(&self) -> bool {
        let bytes = (1..=u8::MAX).filter(|byte| *byte != b'/');
        let mut short = bytes.flat_map(|byte| [vec![b'/', byte], vec![b'/', byte, b'q', b'/', b'x', byte]]);
        let long = [&b"/"[..], &b"q7/".repeat(700), &b"zx".repeat(900)].concat();
        self.matches(b"/") && self.matches(&long) && short.all(|path| self.matches(&path))
    }
}

/// Why an expression cannot be compiled, on one line.
pub(crate) fn compile_error(error: regex::Error) -> BadPattern {
    BadPattern(match error {
        regex::Error::CompiledTooBig(bytes) => {
            format!("it takes more than {bytes} bytes when it is compiled")
        }
        // The last line of several has the reason; those in front of it show the place.
        error => {
            error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
        }
    })
}

/// Patterns of the same kind and text are the same.
impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, &self.text) == (other.kind, &other.text)
    }
}

impl Eq for Pattern {}

/// Whether all that it matches lies at the beginning of a path and begins with another byte than a slash.
fn begins_otherwise(parsed: &regex_syntax::hir::Hir) -> bool {
    use regex_syntax::hir::Look;
    use regex_syntax::hir::literal::Extractor;
    let starts = Extractor::new().extract(parsed);
    let slashless = |literals: &[regex_syntax::hir::literal::Literal]| {
        !literals.is_empty()
            && literals.iter().all(|one| one.as_bytes().first().is_some_and(|byte| *byte != b'/'))
    };
    parsed.properties().look_set_prefix().contains(Look::Start) && starts.literals().is_some_and(slashless)
}

/// Bytes of a pattern: a bound on what a configuration can make a reader read.
pub(crate) const TEXT_BYTES_MAX: usize = 4096;

/// Bytes of a compiled pattern: repetitions with counts multiply it.
const PROGRAM_BYTES_MAX: usize = 1 << 20;

/// Bytes of states that each thread remembers of a pattern.
pub(crate) const CACHE_BYTES_MAX: usize = 1 << 20;

/// Groups within groups.
pub(crate) const DEPTH_MAX: u32 = 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_leads_around_a_pattern() {
        let regex = Pattern::regex("^/secret/.*$").unwrap();
        for path in
            [&b"/secret/a"[..], b"/secret/a\nb", b"/secret/\xff", "/secret/é".as_bytes(), b"/secret/a\n"]
        {
            assert!(regex.matches(path), "{path:?}");
        }
        assert!(Pattern::regex("(?i)\\.php$").unwrap().matches(b"/A.PHP"));
        assert!(!Pattern::regex("\\.php$").unwrap().matches(b"/a.php\n"));
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        for (text, why) in [
            ("(", "unclosed group"),
            ("[", "unclosed character class"),
            ("(?=x)", "look-around"),
            ("(a)\\1", "backreferences"),
            ("^admin", "every path begins with `/`"),
            ("^(a|b)", "every path begins with `/`"),
            ("(?:a{1000}){1000}", "more than 1048576 bytes"),
            (&"(".repeat(200), "unclosed group"),
            (&format!("{}{}", "(".repeat(200), ")".repeat(200)), "nest"),
            (&"a".repeat(5000), "more than 4096 bytes"),
        ] {
            let told = Pattern::regex(text).unwrap_err().to_string();
            assert!(told.contains(why), "{text}: {told}");
            assert!(!told.contains('\n'), "{told}");
        }
        for text in ["^/admin", "admin", "^.admin", "^(/a|b)", "^[^/]*/", "(?i)^/A"] {
            assert!(Pattern::regex(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_matches_everything_is_known() {
        for text in ["", "^", "/", "^/", ".*", "^/.*$", "^/(.*)$", "(?s).*"] {
            assert!(Pattern::regex(text).unwrap().matches_everything(), "{text}");
        }
        for text in ["^/.", "\\.", "^/[^~]*$", "^/[^/]*$", "^/a", "(?-s)^/.*$", "^/.{0,300}$"] {
            assert!(!Pattern::regex(text).unwrap().matches_everything(), "{text}");
        }
        assert!(Pattern::glob("/**").unwrap().matches_everything());
        assert!(!Pattern::glob("/*").unwrap().matches_everything());
    }

    #[test]
    fn groups_have_numbers_and_names() {
        let regex = Pattern::regex("^/(?<year>\\d+)/(.*)$").unwrap();
        assert_eq!(regex.groups().collect::<Vec<_>>(), ["year", "2"]);
        assert!(["0", "1", "2", "year"].iter().all(|name| regex.has_group(name)));
        assert!(!regex.has_group("3") && !regex.has_group("month"));
        assert_eq!(&regex.captures(b"/2024/a/b").unwrap()["year"], b"2024");
    }
}
