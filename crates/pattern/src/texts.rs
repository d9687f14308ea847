//! Lists of patterns on texts that are no paths: fields, cookies, methods. A list is one automaton, however long it is.

use regex::bytes::{Regex, RegexBuilder};

use crate::pattern::{BadPattern, CACHE_BYTES_MAX, DEPTH_MAX, TEXT_BYTES_MAX, compile_error};

/// Globs and regular expressions, of which one has to match.
#[derive(Clone, Debug)]
pub struct TextPatterns(Regex);

/// What of a text globs are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GlobExtent {
    /// The whole.
    Whole,
    /// Any part, in upper or lower case: names within `User-Agent`. Regular expressions ignore case, too.
    PartInAnyCase,
}

impl TextPatterns {
    /// Compiles a list. A text behind `~` is a regular expression, which may match a part. Any other is a glob: `*` is any run
    /// of characters, `?` one.
    ///
    /// # Errors
    /// The first pattern that is none, by its place in the list, and why; or the list is too large as a whole.
    pub fn compile(texts: &[&str], extent: GlobExtent) -> Result<Self, (usize, BadPattern)> {
        let mut all = String::new();
        for (place, text) in texts.iter().enumerate() {
            let one = to_regex(text, extent);
            // Alone first: what is open in one pattern must not be closed in the next.
            if text.len() > TEXT_BYTES_MAX {
                return Err((place, BadPattern::new(format!("it has more than {TEXT_BYTES_MAX} bytes"))));
            }
            build(&one, extent).map_err(|why| (place, why))?;
            all.push_str(if place == 0 { "(?:" } else { "|(?:" });
            all.push_str(&one);
            all.push(')');
        }
        build(&all, extent).map(Self).map_err(|why| (texts.len().saturating_sub(1), why))
    }

    /// Whether one of them matches.
    pub fn match_any(&self, text: &[u8]) -> bool {
        self.0.is_match(text)
    }
}

fn to_regex(text: &str, extent: GlobExtent) -> String {
    if let Some(regex) = text.strip_prefix('~') {
        return regex.to_owned();
    }
    let mut regex = String::new();
    for character in text.chars() {
        match character {
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            plain => regex.push_str(&regex_syntax::escape(plain.encode_utf8(&mut [0; 4]))),
        }
    }
    match extent {
        GlobExtent::Whole => format!("^{regex}$"),
        GlobExtent::PartInAnyCase => regex,
    }
}

fn build(regex: &str, extent: GlobExtent) -> Result<Regex, BadPattern> {
    let regex = RegexBuilder::new(regex)
        .unicode(false)
        .case_insensitive(extent == GlobExtent::PartInAnyCase)
        .dot_matches_new_line(true)
        .size_limit(LIST_PROGRAM_BYTES_MAX)
        .dfa_size_limit(CACHE_BYTES_MAX)
        .nest_limit(DEPTH_MAX)
        .build();
    regex.map_err(compile_error)
}

/// Bytes of a compiled list: some thousands of names.
const LIST_PROGRAM_BYTES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(texts: &[&str], text: &str) -> bool {
        TextPatterns::compile(texts, GlobExtent::Whole).unwrap().match_any(text.as_bytes())
    }

    #[test]
    fn a_glob_is_about_the_whole_and_a_regular_expression_about_a_part() {
        for (pattern, text, expected) in [
            ("beta", "beta", true),
            ("beta", "beta2", false),
            ("beta", "Beta", false),
            ("*bot*", "Mozilla/5.0 (compatible; Googlebot/2.1; +http://google.com/bot.html)", true),
            ("b?t", "bot", true),
            ("b?t", "boot", false),
            ("a.c", "abc", false),
            ("[x]", "[x]", true),
            ("*", "", true),
            ("~^(a|b)", "bc", true),
            ("~bot", "a robot", true),
            ("~(?i)BOT", "a robot", true),
        ] {
            assert_eq!(matches(&[pattern], text), expected, "{pattern} {text}");
        }
        assert!(matches(&["a", "~c$", "b*"], "bcd") && matches(&["a", "~c$", "b*"], "xc"));
        let names = TextPatterns::compile(&["GoogleBot", "gpt*bot"], GlobExtent::PartInAnyCase).unwrap();
        assert!(names.match_any(b"Mozilla/5.0 (compatible; Googlebot/2.1)") && names.match_any(b"GPTBot/1"));
        assert!(!names.match_any(b"Mozilla/5.0 (X11; Linux)"));
    }

    #[test]
    fn a_bad_pattern_is_named_by_its_place() {
        for bad in ["~(", "~a)(b", "~(?=x)", &"x".repeat(5000)] {
            let (place, why) = TextPatterns::compile(&["fine", bad, "~)"], GlobExtent::Whole).unwrap_err();
            assert_eq!(place, 1, "{bad}: {why}");
            assert!(!why.to_string().contains('\n'), "{why}");
        }
    }
}
