//! Directives and their blocks, with included files in the place of their `include`.

use crate::known_files;
use crate::note::{Note, Weight};
use crate::place::{SourcePosition, SyntaxError};
use crate::token::{Token, Tokens};

/// Reads files for `include`.
pub trait Includes {
    /// The names and texts of the files that match the pattern, in order; `None`: it names one file, which cannot be read.
    fn read(&mut self, pattern: &str) -> Option<Vec<(String, String)>>;

    /// Whether there is such a file.
    fn exists(&mut self, path: &str) -> bool;

    /// The folder of the main configuration, absolute.
    fn folder(&self) -> &str;
}

/// A directive.
#[derive(Clone, Debug)]
pub(crate) struct Directive {
    pub(crate) place: SourcePosition,
    pub(crate) name: String,
    pub(crate) arguments: Vec<String>,
    /// The directives in its block; empty without one.
    pub(crate) block: Vec<Self>,
}

impl Directive {
    /// An argument, empty if there are not so many.
    pub(crate) fn argument(&self, index: usize) -> &str {
        self.arguments.get(index).map_or("", String::as_str)
    }

    /// A note about it.
    pub(crate) fn note(&self, weight: Weight, text: impl Into<String>) -> Note {
        Note { place: self.place.clone(), weight, text: text.into() }
    }
}

/// Reads a configuration. The notes are about files that could not be included.
///
/// # Errors
/// If it is none.
pub(crate) fn read(
    name: &str,
    text: &str,
    includes: &mut dyn Includes,
) -> Result<(Vec<Directive>, Vec<Note>), SyntaxError> {
    let mut reader = Reader { includes, notes: Vec::new(), directives: 0 };
    let tree = reader.file(name, text, Depth::default())?;
    Ok((tree, reader.notes))
}

/// How deep a place is.
#[derive(Clone, Copy, Default)]
struct Depth {
    blocks: usize,
    files: usize,
}

struct Reader<'a> {
    includes: &'a mut dyn Includes,
    notes: Vec<Note>,
    directives: usize,
}

impl Reader<'_> {
    fn file(&mut self, name: &str, text: &str, depth: Depth) -> Result<Vec<Directive>, SyntaxError> {
        if let Some(at) = text.find('\0') {
            let line = text[..at].matches('\n').count() + 1;
            let place = SourcePosition { file: name.into(), line, column: 1 };
            return Err(SyntaxError { place, what: "a null byte: this is no text in UTF-8" });
        }
        let mut tokens = Tokens::new(name, text);
        self.block(&mut tokens, depth, None)
    }

    /// Reads the directives of a file, or of the block that began at `opened`.
    fn block(
        &mut self,
        tokens: &mut Tokens<'_>,
        depth: Depth,
        opened: Option<&SourcePosition>,
    ) -> Result<Vec<Directive>, SyntaxError> {
        let mut directives = Vec::new();
        loop {
            let (place, token) = match (tokens.next()?, opened) {
                (Some(next), _) => next,
                (None, None) => return Ok(directives),
                (None, Some(opened)) => {
                    return Err(SyntaxError { place: opened.clone(), what: "this block does not end" });
                }
            };
            match token {
                Token::Word(name) => {
                    let directive = self.directive(tokens, depth, place, name)?;
                    if directive
                        .arguments
                        .iter()
                        .any(|argument| argument.contains(char::REPLACEMENT_CHARACTER))
                    {
                        let text = "this is not in UTF-8: names of files and texts differ";
                        self.notes.push(directive.note(Weight::LeftOut, text));
                    }
                    match directive.name.as_str() {
                        "include" => directives.extend(self.included(&directive, depth)?),
                        _ => directives.push(directive),
                    }
                }
                Token::Close if opened.is_some() => return Ok(directives),
                Token::Close => return Err(SyntaxError { place, what: "there is no block to end" }),
                Token::End | Token::Open => {
                    return Err(SyntaxError { place, what: "the name of a directive is missing" });
                }
            }
        }
    }

    fn directive(
        &mut self,
        tokens: &mut Tokens<'_>,
        depth: Depth,
        place: SourcePosition,
        name: String,
    ) -> Result<Directive, SyntaxError> {
        self.directives += 1;
        if self.directives > DIRECTIVES_MAX {
            return Err(SyntaxError { place, what: "there are too many directives" });
        }
        let mut directive = Directive { place, name, arguments: Vec::new(), block: Vec::new() };
        loop {
            match tokens.next()? {
                Some((_, Token::Word(word))) => directive.arguments.push(word),
                Some((_, Token::End)) => return Ok(directive),
                Some((_, Token::Open)) if directive.name.ends_with("_by_lua_block") => {
                    tokens.skip_program()?;
                    return Ok(directive);
                }
                Some((place, Token::Open)) => {
                    if depth.blocks == BLOCKS_MAX {
                        return Err(SyntaxError { place, what: "blocks are nested too deeply" });
                    }
                    let depth = Depth { blocks: depth.blocks + 1, ..depth };
                    directive.block = self.block(tokens, depth, Some(&place))?;
                    return Ok(directive);
                }
                Some((place, Token::Close)) => {
                    return Err(SyntaxError { place, what: "`;` is missing before this" });
                }
                None => {
                    return Err(SyntaxError { place: directive.place, what: "the `;` of this is missing" });
                }
            }
        }
    }

    fn included(&mut self, include: &Directive, depth: Depth) -> Result<Vec<Directive>, SyntaxError> {
        if depth.files == FILES_MAX {
            let what = "files include each other too deeply";
            return Err(SyntaxError { place: include.place.clone(), what });
        }
        let pattern = include.argument(0);
        let known = || Some(vec![(pattern.to_owned(), known_files::text(pattern)?.to_owned())]);
        let Some(files) = self.includes.read(pattern).or_else(known) else {
            let text = format!("\"{pattern}\" cannot be read: what it says, guards included, is missing");
            self.notes.push(include.note(Weight::Guard, text));
            return Ok(Vec::new());
        };
        let depth = Depth { files: depth.files + 1, ..depth };
        let mut directives = Vec::new();
        for (name, text) in files {
            directives.extend(self.file(&name, &text, depth)?);
        }
        Ok(directives)
    }
}

/// nginx itself has no bound; deeper blocks come from no hand.
const BLOCKS_MAX: usize = 32;
/// Files that include themselves end here.
const FILES_MAX: usize = 8;
/// Of all files, each as often as it is included.
const DIRECTIVES_MAX: usize = 50_000;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Files that are a list.
    pub(crate) struct Listed(pub(crate) Vec<(&'static str, &'static str)>);

    impl Includes for Listed {
        fn read(&mut self, pattern: &str) -> Option<Vec<(String, String)>> {
            let stem = pattern.strip_suffix('*');
            let found = self.0.iter().filter(|(name, _)| match stem {
                Some(stem) => name.starts_with(stem),
                None => *name == pattern,
            });
            let found: Vec<_> = found.map(|(name, text)| ((*name).into(), (*text).into())).collect();
            (stem.is_some() || !found.is_empty()).then_some(found)
        }

        fn exists(&mut self, path: &str) -> bool {
            self.0.iter().any(|(name, _)| *name == path)
        }

        fn folder(&self) -> &'static str {
            "/etc/nginx"
        }
    }

    fn shown(directives: &[Directive]) -> String {
        let each = directives.iter().map(|directive| {
            let words = [std::slice::from_ref(&directive.name), &directive.arguments[..]].concat().join(" ");
            match directive.block.is_empty() {
                true => format!("{words};"),
                false => format!("{words}{{{}}}", shown(&directive.block)),
            }
        });
        each.collect()
    }

    #[test]
    fn files_stand_in_the_place_of_their_include() {
        let mut files =
            Listed(vec![("sites/a", "server { listen 1; }"), ("sites/b", "server { }"), ("x", "y;")]);
        let text = "http { include sites/*; include none/*; include x; include gone; z; }";
        let (tree, notes) = read("t", text, &mut files).unwrap();
        assert_eq!(shown(&tree), "http{server{listen 1;}server;y;z;}");
        assert_eq!(notes.len(), 1);
        assert!(notes[0].to_string().starts_with("t:1:52: \"gone\" cannot be read"), "{}", notes[0]);
    }

    #[test]
    fn a_program_is_no_configuration() {
        let text = "a_by_lua_block { if x then y = { 1; } end } b;";
        assert_eq!(shown(&read("t", text, &mut Listed(vec![])).unwrap().0), "a_by_lua_block;b;");
    }

    #[test]
    fn mistakes_have_a_place() {
        for (text, place, what) in [
            ("a", "t:1:1", "the `;` of this is missing"),
            ("a {\n b; ", "t:1:3", "this block does not end"),
            ("a;\n}", "t:2:1", "there is no block to end"),
            ("a { b }", "t:1:7", "`;` is missing before this"),
            (";", "t:1:1", "the name of a directive is missing"),
            ("include self;", "self:1:1", "files include each other too deeply"),
            ("a;\nb \0;", "t:2:1", "a null byte: this is no text in UTF-8"),
        ] {
            let error = read("t", text, &mut Listed(vec![("self", "include self;")])).unwrap_err();
            assert_eq!((error.place.to_string().as_str(), error.what), (place, what), "{text}");
        }
        let long = "a;\n".repeat(1_000_000);
        assert_eq!(read("t", &long, &mut Listed(vec![])).unwrap_err().what, "there are too many directives");
        assert!(read("t", &"# a\n".repeat(1_000_000), &mut Listed(vec![])).unwrap().0.is_empty());
        let latin = read("t", "root /srv/\u{fffd}; # \u{fffd}", &mut Listed(vec![])).unwrap().1;
        assert_eq!(latin.len(), 1, "{latin:?}");
        let deep = "a {".repeat(40);
        assert_eq!(read("t", &deep, &mut Listed(vec![])).unwrap_err().what, "blocks are nested too deeply");
    }
}
