//! Places in files, and mistakes at them.

use std::fmt;
use std::sync::Arc;

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourcePosition {
    /// The file's name.
    pub file: Arc<str>,
    /// From 1 on.
    pub line: usize,
    /// In characters, from 1 on.
    pub column: usize,
}

impl fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Why a text is no configuration of nginx.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Where that shows.
    pub place: SourcePosition,
    /// In words.
    pub what: &'static str,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

impl std::error::Error for SyntaxError {}
