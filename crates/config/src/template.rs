//! Texts with parts of a request in them: where clients are sent, and what is asked for instead.

use baton_site::template::{BadTemplate, Template};

use super::kind::{Kind, Reading};
use super::raw::Node;
use super::shown::Shown;
use super::text::Text;

/// A text with variables.
pub(crate) struct TemplateOf {
    accepted: &'static str,
    problem: &'static str,
    beginning: &'static str,
    parse: fn(&str) -> Result<Template, BadTemplate>,
}

/// The value of a `Location` field.
pub(crate) const LOCATION: TemplateOf = TemplateOf {
    accepted: "a URL or a path, with `$uri` or `$rest` at its end, or `$path`, `$query`, `$scheme`, `$host`, `$1` or `$name` anywhere",
    problem: "is not a location",
    beginning: "expected `/…`, `http://…` or `https://…`",
    parse: Template::location,
};

/// A target within the site.
pub(crate) const TARGET: TemplateOf = TemplateOf {
    accepted: "a path, and perhaps a query, with `$uri` or `$rest` at its end, or `$path`, `$query`, `$1` or `$name` anywhere",
    problem: "is not a target within the site",
    beginning: "expected `/…`",
    parse: Template::target,
};

impl Kind for TemplateOf {
    type Value = Template;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        self.accepted.into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Template> {
        let text = Text.read(node, reading)?;
        let wrong = match (self.parse)(&text) {
            Ok(template) => return Some(template),
            Err(BadTemplate::Beginning) => self.beginning.to_owned(),
            Err(wrong) => wrong.to_string(),
        };
        reading.refuse(node.span(), self.problem, wrong);
        None
    }

    fn write(&self, value: &Template) -> toml::Value {
        value.text().into()
    }
}
