//! Variables of the environment in strings: `{env.NAME}`, and `{env.NAME:default}` for one that may be unset.

use std::env::VarError;
use std::ops::Range;

use super::error::{Complaint, Source};
use super::raw::{Entries, Node, Value};

/// Puts variables into all strings of a tree.
pub(crate) struct Variables<'a> {
    source: &'a Source,
    lookup: &'a dyn Fn(&str) -> Result<String, VarError>,
    /// The names that were found, for "did you mean".
    known: Vec<String>,
    /// Places of strings that were nothing but a variable.
    pub(crate) whole: Vec<Range<usize>>,
    /// What is wrong with variables.
    pub(crate) complaints: Vec<Complaint>,
}

/// How a variable begins.
pub(crate) const BEGINNING: &str = "{env.";

impl<'a> Variables<'a> {
    /// Takes variables from `lookup`; `known` are the names that exist. Strings are from `source`.
    pub(crate) fn new(
        source: &'a Source,
        lookup: &'a dyn Fn(&str) -> Result<String, VarError>,
        known: Vec<String>,
    ) -> Self {
        Self { source, lookup, known, whole: Vec::new(), complaints: Vec::new() }
    }

    /// Replaces the variables in all strings.
    pub(crate) fn put_into(&mut self, entries: &mut Entries) {
        for node in entries.values_mut() {
            self.put_into_node(node);
        }
    }

    fn put_into_node(&mut self, node: &mut Node) {
        let span = node.span();
        match node.get_mut() {
            Value::String(text) if text.contains(BEGINNING) => {
                if let Some(replaced) = self.replaced(text, &span) {
                    *text = replaced;
                }
            }
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.put_into_node(element)),
            Value::Table(entries) => self.put_into(entries),
            _ => {}
        }
    }

    /// The string with the values of its variables; nothing if one is wrong. Values are not searched again.
    fn replaced(&mut self, text: &str, span: &Range<usize>) -> Option<String> {
        let mut out = String::new();
        let mut rest = text;
        let mut all_are_fine = true;
        while let Some(start) = rest.find(BEGINNING) {
            out.push_str(&rest[..start]);
            let variable = &rest[start..];
            let len = variable.find('}').map_or(variable.len(), |end| end + 1);
            match self.value(&variable[..len]) {
                Ok(value) => out.push_str(&value),
                Err(complaint) => {
                    let (title, label, meant) = *complaint;
                    let mut complaint = Complaint::new(title).at(self.place(&variable[..len], span), label);
                    if let Some(name) = meant {
                        complaint = complaint
                            .did_you_mean(&name, self.known.iter().map(String::as_str))
                            .help(format!("`{{env.{name}:VALUE}}` gives it a value where it is unset"));
                    }
                    self.complaints.push(complaint);
                    all_are_fine = false;
                }
            }
            rest = &variable[len..];
        }
        out.push_str(rest);
        let is_whole = text.starts_with(BEGINNING) && text.find('}') == Some(text.len() - 1);
        if is_whole {
            self.whole.push(span.clone());
        }
        all_are_fine.then_some(out)
    }

    /// The value of `{env.NAME}`, or what is wrong: title, label, and the name if it is unset.
    fn value(&self, variable: &str) -> Result<String, Box<(String, String, Option<String>)>> {
        let wrong = |title: &str, label: &str| Box::new((title.to_owned(), label.to_owned(), None));
        let Some(inside) = variable.strip_suffix('}') else {
            return Err(wrong("a variable has no end", "expected `}` behind it"));
        };
        let inside = &inside[BEGINNING.len()..];
        let (name, default) = match inside.split_once(':') {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let is_name = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            let label = "expected `{env.NAME}` or `{env.NAME:default}`, a name of letters, digits and `_`";
            return Err(wrong("a variable has no proper name", label));
        }
        match ((self.lookup)(name), default) {
            (Ok(value), _) => Ok(value),
            (Err(VarError::NotPresent), Some(default)) => Ok(default.to_owned()),
            (Err(VarError::NotPresent), None) => Err(Box::new((
                format!("the variable `{name}` is not set"),
                "has no default".to_owned(),
                Some(name.to_owned()),
            ))),
            (Err(VarError::NotUnicode(_)), _) => {
                Err(wrong(&format!("the variable `{name}` is not UTF-8"), "cannot be put here"))
            }
        }
    }

    /// Where in the source a variable is written; a string with escapes is pointed at as a whole.
    fn place(&self, variable: &str, span: &Range<usize>) -> Range<usize> {
        let written = self.source.text.get(span.clone()).unwrap_or_default();
        match written.find(variable) {
            Some(at) => span.start + at..span.start + at + variable.len(),
            None => span.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::parse_table;

    fn lookup(name: &str) -> Result<String, VarError> {
        match name {
            "HOST" => Ok("example.org".into()),
            "LOOP" => Ok("{env.HOST}".into()),
            "EMPTY" => Ok(String::new()),
            "N" => Ok("7".into()),
            "RAW" => Err(VarError::NotUnicode("x".into())),
            _ => Err(VarError::NotPresent),
        }
    }

    /// The string of the key `a`, and what is wrong, as it is shown.
    fn put(value: &str) -> (Option<String>, String, usize) {
        let text = format!("a = {value}\n");
        let (mut tree, _) = parse_table(&text, 0);
        let source = Source::new("t".into(), text);
        let mut variables = Variables::new(&source, &lookup, vec!["HOST".into(), "N".into()]);
        variables.put_into(&mut tree);
        let (complaints, whole) = (std::mem::take(&mut variables.complaints), variables.whole.len());
        let value = tree.get("a").and_then(|node| node.get_ref().as_str()).map(str::to_owned);
        (value, super::super::error::ConfigError::new(source, complaints).to_string(), whole)
    }

    #[test]
    fn values_and_defaults_are_put_in() {
        for (written, expected, whole) in [
            ("'{env.HOST}'", "example.org", 1),
            ("'https://{env.HOST}:{env.PORT:8443}/'", "https://example.org:8443/", 0),
            ("'{env.N}{env.N}'", "77", 0),
            ("'{env.NONE:}'", "", 1),
            ("'{env.NONE:a:b}'", "a:b", 1),
            ("'{env.EMPTY:x}'", "", 1),
            // What a variable holds is not looked at again.
            ("'{env.LOOP}'", "{env.HOST}", 1),
            ("'{environment} {x}'", "{environment} {x}", 0),
        ] {
            let (value, told, found) = put(written);
            assert_eq!((value.as_deref(), told.as_str(), found), (Some(expected), "", whole), "{written}");
        }
        let (mut tree, _) = parse_table("a = [{ b = '{env.N}' }]", 0);
        let source = Source::default();
        Variables::new(&source, &lookup, Vec::new()).put_into(&mut tree);
        assert!(format!("{tree:?}").contains("String(\"7\")"));
    }

    #[test]
    fn what_is_wrong_is_pointed_at() {
        for (written, expected) in [
            ("'x{env.HOTS}y'", "t:1:7"),
            ("'x{env.HOTS}y'", "did you mean `HOST`?"),
            ("'x{env.HOTS}y'", "`{env.HOTS:VALUE}` gives it"),
            ("'{env.}'", "no proper name"),
            ("'{env.1A}'", "no proper name"),
            ("'{env.A B}'", "no proper name"),
            ("'{env.HOST'", "has no end"),
            ("'{env.RAW:x}'", "is not UTF-8"),
            ("\"\\u007benv.HOTS}\"", "t:1:5"),
        ] {
            let (value, told, _) = put(written);
            assert!(told.contains(expected), "{written}: {told}");
            assert!(value.is_some_and(|value| value.contains("{env.")), "{written}");
        }
    }
}
