//! Rules of a configuration for fields of responses, and of requests that go on.

use crate::fields::is_same_field;
use crate::variable::Variable;
use crate::variable_text::VariableText;

/// Rules for fields. Names are compared by [`is_same_field`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldRules {
    /// Fields that replace the response's fields of the same names.
    pub set: Vec<(String, VariableText)>,
    /// Fields in addition to the response's.
    pub add: Vec<(String, VariableText)>,
    /// Names of fields to remove.
    pub remove: Vec<String>,
    /// Fields for responses that have none by these names.
    pub default: Vec<(String, VariableText)>,
}

impl FieldRules {
    /// Whether the response's own fields of this name are dropped.
    pub fn drops(&self, name: &[u8]) -> bool {
        self.dropped().any(|dropped| is_same_field(dropped, name))
    }

    /// Names whose fields are dropped: removed or set.
    pub fn dropped(&self) -> impl Iterator<Item = &str> {
        self.remove.iter().chain(self.set.iter().map(|(name, _)| name)).map(String::as_str)
    }

    /// Fields that each response gets.
    pub fn added(&self) -> impl Iterator<Item = (&str, &VariableText)> {
        pairs(&self.set).chain(pairs(&self.add))
    }

    /// Fields for responses that have none of these names after the others were added.
    pub fn defaults(&self) -> impl Iterator<Item = (&str, &VariableText)> {
        let is_added = |name: &str| self.added().any(|(added, _)| is_same_field(added, name));
        pairs(&self.default).filter(move |(name, _)| !is_added(name))
    }

    /// Fields to add to a response; `keeps` says whether it has a field of a name that is not dropped.
    pub fn fields_beside(&self, keeps: impl Fn(&str) -> bool) -> impl Iterator<Item = (&str, &VariableText)> {
        self.added().chain(self.defaults().filter(move |(name, _)| !keeps(name)))
    }

    /// All fields that a response may get.
    pub fn all(&self) -> impl Iterator<Item = (&str, &VariableText)> {
        self.added().chain(pairs(&self.default))
    }

    /// Whether the fields differ from request to request.
    pub fn has_variables(&self) -> bool {
        self.variables().next().is_some()
    }

    /// The variables in all values.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.all().flat_map(|(_, value)| value.variables())
    }
}

fn pairs(fields: &[(String, VariableText)]) -> impl Iterator<Item = (&str, &VariableText)> {
    fields.iter().map(|(name, value)| (name.as_str(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(texts: &[(&str, &str)]) -> Vec<(String, VariableText)> {
        texts.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn each_word_does_something_else() {
        let rules = FieldRules {
            set: fields(&[("A", "set"), ("B", "set")]),
            add: fields(&[("a", "added"), ("C", "added")]),
            remove: vec!["D".into()],
            default: fields(&[
                ("b", "default"),
                ("c", "default"),
                ("D", "default"),
                ("E", "default"),
                ("F", "default"),
            ]),
        };
        for (name, drops) in [("a", true), ("B", true), ("c", false), ("d", true), ("E", false), ("_", false)]
        {
            assert_eq!(rules.drops(name.as_bytes()), drops, "{name}");
        }
        let beside = rules.fields_beside(|name| name == "E");
        let beside: Vec<_> = beside.filter_map(|(name, value)| Some((name, value.fixed()?))).collect();
        let expected =
            [("A", "set"), ("B", "set"), ("a", "added"), ("C", "added"), ("D", "default"), ("F", "default")];
        assert_eq!(beside, expected);
        assert_eq!(FieldRules::default().all().count(), 0);
    }
}
