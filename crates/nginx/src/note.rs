//! What is to be said of a line.

use std::fmt;

use crate::place::SourcePosition;

/// How much it matters that a line was not taken over as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weight {
    /// Baton does it in another way, which its administrator should know.
    Remark,
    /// Requests may be answered in another way.
    LeftOut,
    /// The directive guards something.
    Guard,
}

/// What is to be said of a line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    /// Its directive.
    pub place: SourcePosition,
    /// How much that matters.
    pub weight: Weight,
    /// A sentence.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}
