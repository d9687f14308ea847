//! What is wrong with a configuration: every complaint of one reading, each with its place in the source, what
//! would be accepted and, where a word comes near, "did you mean".

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// A text that settings were read from, and the name that messages call it by.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Path of a file, or `command line`.
    pub name: String,
    /// The whole text; spans are byte ranges of it.
    pub text: String,
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

    fn render(&self, source: &Source, renderer: &Renderer) -> String {
        let annotations = self.annotations.iter().enumerate().map(|(index, annotation)| {
            let kind = if index == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
            kind.span(annotation.span.clone()).label(&annotation.label)
        });
        let excerpt = Snippet::source(&source.text).path(&source.name).annotations(annotations);
        let excerpt = (!self.annotations.is_empty()).then_some(excerpt);
        let help = self.help.iter().map(|help| Level::HELP.message(help));
        renderer.render(&[Level::ERROR.primary_title(&self.title).elements(excerpt).elements(help)])
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
    let distance = |word: &str| strsim::damerau_levenshtein(&written.to_lowercase(), word);
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
        let source = Source { name: "b.toml".into(), text: "one\ntwo\n".into() };
        let late = Complaint::new("late").at(4..7, "here");
        let early = Complaint::new("early").at(0..3, "there");
        let shown = ConfigError::new(source, vec![late, early]).to_string();
        assert!(shown.find("early") < shown.find("late"), "{shown}");
        assert!(shown.contains("b.toml:2:1"), "{shown}");
    }
}
