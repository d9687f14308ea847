//! Patterns on paths: globs and regular expressions.

use baton_pattern::{BadPattern, Pattern};

use super::kind::{Kind, Reading};
use super::raw::Node;
use super::shown::Shown;
use super::text::Text;

/// A pattern on the paths of requests or files.
pub(crate) struct RoutePattern {
    accepted: &'static str,
    compile: fn(&str) -> Result<Pattern, BadPattern>,
}

/// A glob.
pub(crate) const GLOB: RoutePattern = RoutePattern {
    accepted: "a glob such as \"/img/*.png\", \"*.php\" or \"/a/**\"",
    compile: Pattern::glob,
};

/// A regular expression.
pub(crate) const REGEX: RoutePattern = RoutePattern {
    accepted: "a regular expression such as '\\.php$' or '(?i)^/blog/(\\d+)$'",
    compile: Pattern::regex,
};

impl Kind for RoutePattern {
    type Value = Pattern;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        self.accepted.into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Pattern> {
        let text = Text.read(node, reading)?;
        match (self.compile)(&text) {
            Ok(pattern) => Some(pattern),
            Err(bad) => {
                let complaint = reading.complaint("cannot be matched").at(node.span(), bad.to_string());
                reading.complain(complaint.help(format!("expected {}", self.accepted)));
                None
            }
        }
    }

    fn write(&self, value: &Pattern) -> toml::Value {
        value.text().into()
    }
}
