//! Patterns on the paths of requests and files: globs and regular expressions. A glob means the same wherever a
//! configuration has one.

mod glob;
mod pattern;

pub use pattern::{BadPattern, Captures, Pattern};
