//! Settings that are one word of a closed list.

use std::marker::PhantomData;

use super::kind::{Kind, Reading};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::shown::Shown;

/// A choice between words.
pub trait Words: Copy + PartialEq + Sized + 'static {
    /// Every word, what it stands for and what it means, in the order of the documentation.
    fn words() -> Vec<(&'static str, Self, &'static str)>;
}

/// One of the words of `T`.
pub(crate) struct Word<T>(PhantomData<T>);

impl<T> Word<T> {
    /// The kind.
    pub(crate) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: Words> Kind for Word<T> {
    type Value = T;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        let words: Vec<_> = T::words().into_iter().map(|(word, ..)| format!("\"{word}\"")).collect();
        format!("one of {}", words.join(", "))
    }

    fn explained(&self) -> Vec<(&'static str, &'static str)> {
        T::words().into_iter().map(|(word, _, meaning)| (word, meaning)).collect()
    }

    fn schema(&self) -> Schema {
        Schema::either(T::words().into_iter().map(|(word, ..)| Schema::Word(word)).chain([Schema::Variable]))
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<T> {
        let Value::String(written) = node.get_ref() else {
            return reading.mismatch(node, &self.accepted());
        };
        let words = T::words();
        let found = words.iter().find(|(word, ..)| word == written).map(|(_, value, _)| *value);
        if found.is_none() {
            let complaint = reading
                .complaint("has an unknown word")
                .at(node.span(), format!("expected {}", self.accepted()));
            reading.complain(complaint.did_you_mean(written, words.iter().map(|(word, ..)| *word)));
        }
        found
    }

    fn write(&self, value: &T) -> toml::Value {
        word_of(*value).into()
    }
}

/// The word that stands for a value.
pub fn word_of<T: Words>(value: T) -> &'static str {
    let words = T::words();
    words.iter().find(|(_, other, _)| *other == value).map_or("", |(word, ..)| word)
}

/// All words of a choice.
pub fn words_of<T: Words>() -> Vec<&'static str> {
    T::words().into_iter().map(|(word, ..)| word).collect()
}

/// Declares an enum whose variants are words of the configuration; their comments are their documentation. With `for`,
/// gives words to an enum that another crate declared.
macro_rules! words {
    (for $name:ty { $( $(#[doc = $doc:literal])* $variant:ident = $word:literal, )* }) => {
        impl $crate::words::Words for $name {
            fn words() -> Vec<(&'static str, Self, &'static str)> {
                vec![$( ($word, Self::$variant, concat!($($doc),*).trim()) ),*]
            }
        }
    };
    (
        $(#[doc = $about:literal])*
        $name:ident { $( $(#[doc = $doc:literal])* $variant:ident = $word:literal, )* }
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[doc = $doc])* $variant, )* }

        words! { for $name { $( $(#[doc = $doc])* $variant = $word, )* } }
    };
}
pub(crate) use words;
