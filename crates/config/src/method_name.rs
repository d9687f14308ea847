//! Names of methods.

use super::kind::{Kind, Reading};
use super::raw::Node;
use super::shown::Shown;
use super::text::Text;

/// The name of a method, as requests have it.
pub(crate) struct MethodName;

impl Kind for MethodName {
    type Value = String;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "a method such as \"GET\" or \"POST\"".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<String> {
        let name = Text.read(node, reading)?;
        let is_token = name.bytes().all(baton_http::is_token_byte);
        let upper = name.to_ascii_uppercase();
        if is_token && (name == upper || !KNOWN_METHODS.contains(&upper.as_str())) {
            return Some(name);
        }
        let complaint = reading.complaint("has no method").at(node.span(), "no request has this method");
        reading.complain(match KNOWN_METHODS.contains(&upper.as_str()) {
            true => complaint.help(format!("methods are case-sensitive: did you mean `{upper}`?")),
            false => complaint.help(format!("expected {}", self.accepted())),
        });
        None
    }

    fn write(&self, value: &String) -> toml::Value {
        value.as_str().into()
    }
}

/// Methods that are meant even if they are written in lower case.
const KNOWN_METHODS: [&str; 9] =
    ["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH", "CONNECT", "TRACE"];
