//! Kinds of settings that are text: any, of a certain form, or a path.

use std::path::PathBuf;

use super::kind::{Kind, Reading};
use super::raw::{Node, Value};
use super::shown::Shown;

/// A string that is not empty and has no control characters.
pub(crate) struct Text;

impl Kind for Text {
    type Value = String;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "a string".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<String> {
        TextOf { accepted: "a string", check: Ok }.read(node, reading)
    }

    fn write(&self, value: &String) -> toml::Value {
        value.as_str().into()
    }
}

/// Such a string that is for the operator and the one who reads it there: the name of an account, an address.
pub(crate) struct Private;

impl Kind for Private {
    type Value = String;

    const SHOWN: Shown = Shown::Nothing;

    fn accepted(&self) -> String {
        Text.accepted()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<String> {
        Text.read(node, reading)
    }

    fn write(&self, value: &String) -> toml::Value {
        Text.write(value)
    }
}

/// Such a string of a certain form.
pub(crate) struct TextOf {
    /// What may be written.
    pub accepted: &'static str,
    /// Says what is wrong, or gives the text as it is kept.
    pub check: fn(String) -> Result<String, Wrong>,
}

/// What is wrong with a text.
pub(crate) struct Wrong {
    /// The end of a sentence that begins with the setting's name.
    pub problem: &'static str,
    /// What stands below the place.
    pub label: String,
}

impl Wrong {
    /// Something is wrong.
    pub(crate) fn new(problem: &'static str, label: impl Into<String>) -> Self {
        Self { problem, label: label.into() }
    }
}

impl Kind for TextOf {
    type Value = String;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        self.accepted.into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<String> {
        let Value::String(text) = node.get_ref() else {
            return reading.mismatch(node, self.accepted);
        };
        let checked = if text.is_empty() {
            Err(Wrong::new("is empty", format!("expected {}", self.accepted)))
        } else if text.chars().any(char::is_control) {
            Err(Wrong::new("has control characters", "expected printable text on one line"))
        } else {
            (self.check)(text.clone())
        };
        checked.map_err(|wrong| reading.refuse(node.span(), wrong.problem, wrong.label)).ok()
    }

    fn write(&self, value: &String) -> toml::Value {
        value.as_str().into()
    }
}

/// The path of a file, made absolute.
pub(crate) struct FilePath;

impl Kind for FilePath {
    type Value = PathBuf;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "a path".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<PathBuf> {
        // Collects components, so that messages show `/folder/x` for `./x`.
        Text.read(node, reading).map(|text| reading.base_at(&node.span()).join(text).components().collect())
    }

    fn write(&self, value: &PathBuf) -> toml::Value {
        value.display().to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::raw::{RawConfig, parse_value};

    fn read(text: &str) -> Result<PathBuf, String> {
        let raw = RawConfig::parse("t".into(), String::new(), Path::new("/base")).expect("TOML");
        let mut reading = Reading { setting: "it".into(), ..Reading::new(&raw) };
        let value = FilePath.read(&parse_value(text, 0), &mut reading);
        value.ok_or_else(|| format!("{:?}", reading.complaints))
    }

    #[test]
    fn relative_paths_are_relative_to_the_base() {
        assert_eq!(read("'log/x'"), Ok(PathBuf::from("/base/log/x")));
        assert_eq!(read("'/x'"), Ok(PathBuf::from("/x")));
        for (given, shown) in [("'.'", "/base"), ("'./x/'", "/base/x"), ("'../x'", "/base/../x")] {
            assert_eq!(read(given).map(PathBuf::into_os_string), Ok(shown.into()), "{given}");
        }
        assert!(read("'a\\nb'").is_ok(), "a literal string has no escapes");
        assert!(read("\"a\\nb\"").unwrap_err().contains("control characters"));
    }
}
