//! Patterns on the paths of requests and files, and on other texts of requests: globs and regular expressions. A glob on a
//! path means the same wherever a configuration has one.

mod glob;
mod pattern;
mod texts;

pub use pattern::{BadPattern, Captures, Pattern};
pub use texts::{GlobExtent, TextPatterns};
