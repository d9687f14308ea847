//! Texts that a configuration gives, constant or with parts of a request in them: values of fields, bodies.
//!
//! Clients write some of these parts. A line break must not begin another field, so control characters are encoded.

use std::borrow::Cow;
use std::fmt;

use crate::variable::{LoneDollar, TextPart, Variable, text_of_parts, text_parts};

/// A text of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VariableText {
    /// A text that no request changes.
    Fixed(String),
    /// Texts and variables, of which at least one is a variable.
    Made(Vec<TextPart<Variable>>),
}

/// Knows what variables stand for in one request.
pub trait VariableSource: fmt::Debug {
    /// Appends what a variable stands for; nothing where it stands for nothing.
    fn push(&self, variable: &Variable, out: &mut Vec<u8>);
}

/// Knows nothing.
impl VariableSource for () {
    fn push(&self, _: &Variable, _: &mut Vec<u8>) {}
}

/// Where it is not known, variables stand for nothing.
impl<S: VariableSource> VariableSource for Option<S> {
    fn push(&self, variable: &Variable, out: &mut Vec<u8>) {
        if let Some(source) = self {
            source.push(variable, out);
        }
    }
}

impl VariableText {
    /// Reads a text.
    ///
    /// # Errors
    /// A `$` that begins no variable.
    pub fn parse(text: &str) -> Result<Self, LoneDollar> {
        let mut parts = text_parts(text, |name| Ok::<_, LoneDollar>(Variable::of(name)))?;
        Ok(match &mut parts[..] {
            [] => Self::Fixed(String::new()),
            [TextPart::Text(text)] => Self::Fixed(std::mem::take(text)),
            _ => Self::Made(parts),
        })
    }

    /// The text, if it is the same for each request.
    pub fn fixed(&self) -> Option<&str> {
        match self {
            Self::Fixed(text) => Some(text),
            Self::Made(_) => None,
        }
    }

    /// Whether there is nothing of it.
    pub fn is_empty(&self) -> bool {
        self.fixed() == Some("")
    }

    /// The variables in it.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        let parts = match self {
            Self::Fixed(_) => &[][..],
            Self::Made(parts) => parts,
        };
        parts.iter().filter_map(|part| match part {
            TextPart::Text(_) => None,
            TextPart::Variable(variable) => Some(variable),
        })
    }

    /// The text for a request.
    pub fn filled(&self, source: &dyn VariableSource) -> Cow<'_, [u8]> {
        let parts = match self {
            Self::Fixed(text) => return Cow::Borrowed(text.as_bytes()),
            Self::Made(parts) => parts,
        };
        let mut value = Vec::new();
        for part in parts {
            match part {
                TextPart::Text(text) => value.extend_from_slice(text.as_bytes()),
                TextPart::Variable(variable) => source.push(variable, &mut value),
            }
        }
        Cow::Owned(value)
    }

    /// The value of a field for a request. Empty: the field is not sent.
    pub fn field(&self, source: &dyn VariableSource) -> Cow<'_, [u8]> {
        match self.filled(source) {
            Cow::Owned(value) => Cow::Owned(without_controls(value)),
            fixed @ Cow::Borrowed(_) => fixed,
        }
    }
}

impl From<&str> for VariableText {
    /// A constant, in which a `$` is a dollar.
    fn from(text: &str) -> Self {
        Self::Fixed(text.to_owned())
    }
}

/// As [`parse`](VariableText::parse) reads it.
impl fmt::Display for VariableText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&match self {
            Self::Fixed(text) => text.replace('$', "$$"),
            Self::Made(parts) => text_of_parts(parts),
        })
    }
}

/// The value as a field can have it: control characters are encoded, and blanks around it are cut off.
fn without_controls(value: Vec<u8>) -> Vec<u8> {
    let is_safe = |byte: &u8| !byte.is_ascii_control();
    if value.iter().all(is_safe) && value.trim_ascii().len() == value.len() {
        return value;
    }
    let mut safe = Vec::with_capacity(value.len());
    for byte in value.trim_ascii() {
        match is_safe(byte) {
            true => safe.push(*byte),
            false => safe.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Known;

    impl VariableSource for Known {
        fn push(&self, variable: &Variable, out: &mut Vec<u8>) {
            match variable {
                Variable::Host => out.extend_from_slice(b"a.example"),
                Variable::Query => out.extend_from_slice(b"x\r\nSet-Cookie: y\0"),
                Variable::Group(name) => out.extend_from_slice(format!("<{name}>").as_bytes()),
                _ => {}
            }
        }
    }

    fn made(text: &str) -> String {
        String::from_utf8(VariableText::parse(text).unwrap().field(&Known).into_owned()).unwrap()
    }

    #[test]
    fn variables_are_put_in() {
        for (text, value) in [
            ("plain", "plain"),
            ("$host", "a.example"),
            ("<$host:80>", "<a.example:80>"),
            ("${host}s", "a.examples"),
            ("$hosts", "<hosts>"),
            ("$1$2x", "<1><2>x"),
            ("$$host $$", "$host $"),
            ("$upstream", ""),
            (" $host ", "a.example"),
        ] {
            assert_eq!(made(text), value, "{text}");
        }
    }

    #[test]
    fn a_value_begins_no_second_line() {
        assert_eq!(made("$query"), "x%0D%0ASet-Cookie: y%00");
    }

    #[test]
    fn a_dollar_stays_one() {
        assert_eq!(VariableText::from("$host").to_string(), "$$host");
        assert_eq!(VariableText::parse("$").unwrap_err(), LoneDollar);
    }
}
