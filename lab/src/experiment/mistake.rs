//! What is wrong with an experiment's file: the line, what it says, and what may have been meant.

use std::fmt;
use std::ops::Range;

use strsim::normalized_damerau_levenshtein;

/// A mistake in an experiment's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    file: String,
    /// Counted from one.
    line: usize,
    what: String,
}

impl Mistake {
    /// At these bytes of the text.
    pub(crate) fn at(file: &str, text: &str, span: Range<usize>, what: impl Into<String>) -> Self {
        let line = text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1;
        Self { file: file.to_owned(), line, what: what.into() }
    }

    /// What the parser says. Its list of known words becomes a proposal.
    pub(crate) fn of_parser(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let said = error.message();
        let mut words = said.split('`').skip(1).step_by(2);
        let unknown = words.next().filter(|_| said.starts_with("unknown "));
        let span = error.span().unwrap_or_default();
        // Of an unknown key in a table with kinds the parser knows the table only.
        let span = match unknown.and_then(|word| text[span.start..].find(word)) {
            Some(offset) => span.start + offset..span.end,
            None => span,
        };
        let meant = unknown.and_then(|unknown| likely(unknown, words));
        let what = match (unknown, meant) {
            (Some(unknown), Some(meant)) => format!("`{unknown}` is not known: did you mean `{meant}`?"),
            _ => said.to_owned(),
        };
        Self::at(file, text, span, what)
    }
}

/// The known word that is most like this one, if any is.
pub(crate) fn likely<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |word: &&str| normalized_damerau_levenshtein(unknown, word);
    let best = known.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&best) >= LIKENESS_MIN).then_some(best)
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

impl std::error::Error for Mistake {}

/// Below this likeness a proposal would mislead.
const LIKENESS_MIN: f64 = 0.6;
