//! What is wrong with a configuration: every complaint of one reading, each with its place in the source, what
//! would be accepted and, where a word comes near, "did you mean".
//!
//! Several files are one source: their texts follow one another, so that a span names the file, too.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::{Annotation as Shown, AnnotationKind, Level, Renderer, Snippet};

/// A text that settings were read from, and the name that messages call it by.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Path of a file, or `command line`.
    pub name: String,
    /// The whole text, included files at its end; spans are byte ranges of it.
    pub text: String,
    /// The files that the first one includes, in the order of the text.
    included: Vec<Included>,
}

/// A file that is part of a source.
#[derive(Clone, Debug)]
struct Included {
    name: String,
    folder: PathBuf,
    start: usize,
}

impl Source {
    /// A single text.
    pub fn new(name: String, text: String) -> Self {
        Self { name, text, included: Vec::new() }
    }

    /// Appends a file, and returns where its text begins.
    pub(crate) fn include(&mut self, name: String, folder: PathBuf, text: &str) -> usize {
        // A place behind the last byte of one file is not the first byte of the next.
        self.text.push('\n');
        let start = self.text.len();
        self.text.push_str(text);
        self.included.push(Included { name, folder, start });
        start
    }

    /// The folder of the included file at a place; none in the first file.
    pub(crate) fn folder_at(&self, place: usize) -> Option<&Path> {
        let file = self.included.iter().rev().find(|file| file.start <= place)?;
        Some(&file.folder)
    }

    /// The files with their texts, the first one first.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        let starts = std::iter::once(0).chain(self.included.iter().map(|file| file.start));
        starts.map(|start| self.file_at(start)).map(|(name, text, _)| (name, text))
    }

    /// Name, text and beginning of the file at a place.
    fn file_at(&self, place: usize) -> (&str, &str, usize) {
        let next = self.included.partition_point(|file| file.start <= place);
        let end = self.included.get(next).map_or(self.text.len(), |file| file.start - 1);
        let (name, start) = match next.checked_sub(1) {
            Some(at) => (&self.included[at].name, self.included[at].start),
            None => (&self.name, 0),
        };
        (name, &self.text[start..end], start)
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug)]
pub struct Complaint {
    title: String,
    annotations: Vec<Annotation>,
    help: Vec<String>,
}

#[derive(Clone, Debug)]
struct Annotation {
    span: Range<usize>,
    label: String,
}

impl Complaint {
    /// A complaint about the whole configuration.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), annotations: Vec::new(), help: Vec::new() }
    }

    /// Points at the source. The first span is where the fault is; further ones explain it.
    pub fn at(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.annotations.push(Annotation { span, label: label.into() });
        self
    }

    /// Adds a remedy.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// Adds "did you mean" if one of `words` comes near to what was written.
    pub fn did_you_mean<'w>(self, written: &str, words: impl IntoIterator<Item = &'w str>) -> Self {
        match nearest(written, words) {
            Some(word) => self.help(format!("did you mean `{word}`?")),
            None => self,
        }
    }

    /// Whether the fault lies within this part of the source.
    pub fn lies_in(&self, part: &Range<usize>) -> bool {
        self.annotations
            .first()
            .is_some_and(|annotation| part.start <= annotation.span.start && annotation.span.end <= part.end)
    }

    fn position(&self) -> usize {
        self.annotations.first().map_or(0, |annotation| annotation.span.start)
    }

    /// Places and words, a line for each.
    fn in_words(&self, source: &Source) -> String {
        let mut lines = vec![format!("error: {}", self.title)];
        for Annotation { span, label } in &self.annotations {
            let (name, text, start) = source.file_at(span.start);
            let line = text[..span.start - start].matches('\n').count() + 1;
            lines.push(format!("  {name}:{line}: {label}"));
        }
        lines.extend(self.help.iter().map(|help| format!("  help: {help}")));
        lines.join("\n")
    }

    fn render(&self, source: &Source, renderer: &Renderer) -> String {
        // An excerpt for each file, that of the fault first.
        let mut excerpts: Vec<(usize, Snippet<'_, Shown<'_>>)> = Vec::new();
        for (index, annotation) in self.annotations.iter().enumerate() {
            let kind = if index == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
            let (name, text, start) = source.file_at(annotation.span.start);
            let span = annotation.span.start - start..annotation.span.end - start;
            let shown = kind.span(span).label(&annotation.label);
            match excerpts.iter().position(|(known, _)| *known == start) {
                Some(at) => {
                    let (start, excerpt) = excerpts.remove(at);
                    excerpts.insert(at, (start, excerpt.annotation(shown)));
                }
                None => excerpts.push((start, Snippet::source(text).path(name).annotation(shown))),
            }
        }
        let excerpts = excerpts.into_iter().map(|(_, excerpt)| excerpt);
        let help = self.help.iter().map(|help| Level::HELP.message(help));
        renderer.render(&[Level::ERROR.primary_title(&self.title).elements(excerpts).elements(help)])
    }
}

/// Why a configuration was refused: all that is wrong with it, in the order of the text.
#[derive(Debug)]
pub struct ConfigError {
    source: Source,
    complaints: Vec<Complaint>,
}

impl ConfigError {
    /// Puts the complaints about `source` in order.
    pub fn new(source: Source, mut complaints: Vec<Complaint>) -> Self {
        complaints.sort_by_key(Complaint::position);
        Self { source, complaints }
    }

    /// The text that was refused; none if it could not be read.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The messages without source excerpts, which may have secrets in them.
    pub fn without_excerpts(&self) -> String {
        self.complaints.iter().map(|complaint| complaint.in_words(&self.source) + "\n").collect()
    }

    /// The messages with source excerpts, in colour if `styled`.
    pub fn render(&self, styled: bool) -> String {
        let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
        let messages: Vec<_> =
            self.complaints.iter().map(|complaint| complaint.render(&self.source, &renderer)).collect();
        messages.join("\n\n")
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for ConfigError {}

/// The word that `written` was probably meant to be: at most a third of its letters away.
fn nearest<'w>(written: &str, words: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let far = (written.chars().count() / 3).max(1);
    let distance = |word: &str| strsim::damerau_levenshtein(&written.to_lowercase(), &word.to_lowercase());
    words
        .into_iter()
        .map(|word| (distance(word), word))
        .filter(|(distance, _)| *distance <= far)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_suggested_and_a_far_one_is_not() {
        let words = ["connections_max", "fields_max", "ranges_max"];
        assert_eq!(nearest("conections_max", words), Some("connections_max"));
        assert_eq!(nearest("Fields_Max", words), Some("fields_max"));
        assert_eq!(nearest("colour", words), None);
    }

    #[test]
    fn complaints_come_in_the_order_of_the_text() {
        let source = Source::new("b.toml".into(), "one\ntwo\n".into());
        let late = Complaint::new("late").at(4..7, "here");
        let early = Complaint::new("early").at(0..3, "there");
        let shown = ConfigError::new(source, vec![late, early]).to_string();
        assert!(shown.find("early") < shown.find("late"), "{shown}");
        assert!(shown.contains("b.toml:2:1"), "{shown}");
    }
    #[test]
    fn a_place_names_its_file() {
        let mut source = Source::new("a".into(), "one".into());
        let [second, third] =
            ["two\n", "three"].map(|text| source.include(text[..2].into(), "/f".into(), text));
        let file = |place| {
            let (name, text, start) = source.file_at(place);
            (name.to_owned(), text.to_owned(), start)
        };
        for (place, expected) in [
            (0, ("a", "one", 0)),
            (3, ("a", "one", 0)),
            (second, ("tw", "two\n", second)),
            (second + 4, ("tw", "two\n", second)),
            (third, ("th", "three", third)),
            (third + 5, ("th", "three", third)),
        ] {
            assert_eq!(file(place), (expected.0.into(), expected.1.into(), expected.2), "{place}");
        }
        assert_eq!((source.folder_at(3), source.folder_at(third)), (None, Some(Path::new("/f"))));
        let complaint = Complaint::new("both").at(third + 1..third + 3, "here").at(0..1, "there");
        let shown = ConfigError::new(source, vec![complaint]).to_string();
        assert!(shown.contains("--> th:1:2") && shown.contains("a:1:1"), "{shown}");
    }
}
