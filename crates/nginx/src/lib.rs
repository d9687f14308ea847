//! Configurations of nginx, read and turned into Baton's, without I/O.
//!
//! ```text
//!   text ─► tokens ─► Directive, includes inlined ─► sites and routes ─► TOML
//!                                     │
//!                                     └─► a note for each line that could not be taken over
//! ```
//!
//! A rule that guards something is taken over or keeps its part of the site closed; what is neither has a note of
//! [`Weight::Guard`].

mod names;
mod note;
mod place;
mod redirect;
mod token;
mod translate;
mod tree;
mod values;
mod written;

pub use note::{Note, Weight};
pub use place::{SourcePosition, SyntaxError};
pub use tree::Includes;

/// A configuration of Baton, and what could not be taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// A TOML file.
    pub toml: String,
    /// In the order of their places.
    pub notes: Vec<Note>,
}

/// Converts the configuration with this name and text. `includes` reads what it includes.
///
/// # Errors
/// If it is none.
pub fn convert(name: &str, text: &str, includes: &mut dyn Includes) -> Result<Converted, SyntaxError> {
    let (tree, mut notes) = tree::read(name, text, includes)?;
    let (toml, more) = translate::configuration(&tree, includes);
    notes.extend(more);
    notes.sort_by(|a, b| a.place.cmp(&b.place));
    notes.dedup();
    let toml = written::document(&toml, name, &notes);
    Ok(Converted { toml, notes })
}
