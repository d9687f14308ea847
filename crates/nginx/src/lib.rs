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

mod constants;
mod known_files;
mod names;
mod note;
mod place;
mod redirect;
mod token;
mod translate;
mod tree;
mod values;
mod written;

use tree::Directive;

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
    let (mut tree, mut notes) = tree::read(name, text, includes)?;
    if tree.iter().any(|directive| directive.name == "location") {
        let server = Directive {
            name: "server".into(),
            arguments: Vec::new(),
            block: tree.clone(),
            ..tree[0].clone()
        };
        notes.push(server.note(Weight::LeftOut, "a part of a server: it is taken as one of port 80"));
        tree = vec![server];
    }
    each_server(&mut tree, &mut constants::put_in);
    let (toml, more) = translate::configuration(&tree, includes);
    notes.extend(more);
    if !toml.sections.iter().any(|section| section.header == "[[site]]") {
        let place = SourcePosition { file: name.into(), line: 1, column: 1 };
        notes.push(Note {
            place,
            weight: Weight::LeftOut,
            text: "there is no server that could be taken over".into(),
        });
    }
    notes.sort_by(|a, b| a.place.cmp(&b.place));
    notes.dedup();
    let toml = written::document(&toml, name, &notes);
    Ok(Converted { toml, notes })
}

/// Has something done to each server, which may be within a block of `http`.
fn each_server(block: &mut [Directive], what: &mut dyn FnMut(&mut Directive)) {
    for directive in block {
        match directive.name.as_str() {
            "http" => each_server(&mut directive.block, what),
            "server" => what(directive),
            _ => {}
        }
    }
}
