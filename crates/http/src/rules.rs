//! Rules of a configuration for fields of responses, and of requests that go on.

use crate::field_value::{FieldValue, FieldVariable};
use crate::fields::is_same_field;

/// Rules for fields. Names are compared by [`is_same_field`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldRules {
    /// Fields that replace the response's fields of the same names.
    pub set: Vec<(String, FieldValue)>,
    /// Fields in addition to the response's.
    pub add: Vec<(String, FieldValue)>,
    /// Names of fields to remove.
    pub remove: Vec<String>,
    /// Fields for responses that have none by these names.
    pub default: Vec<(String, FieldValue)>,
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
    pub fn added(&self) -> impl Iterator<Item = (&str, &FieldValue)> {
        pairs(&self.set).chain(pairs(&self.add))
    }

    /// Fields for responses that have none of these names after the others were added.
    pub fn defaults(&self) -> impl Iterator<Item = (&str, &FieldValue)> {
        let is_added = |name: &str| self.added().any(|(added, _)| is_same_field(added, name));
        pairs(&self.default).filter(move |(name, _)| !is_added(name))
    }

    /// Fields to add to a response; `keeps` says whether it has a field of a name that is not dropped.
    pub fn fields_beside(&self, keeps: impl Fn(&str) -> bool) -> impl Iterator<Item = (&str, &FieldValue)> {
        self.added().chain(self.defaults().filter(move |(name, _)| !keeps(name)))
    }

    /// All fields that a response may get.
    pub fn all(&self) -> impl Iterator<Item = (&str, &FieldValue)> {
        self.added().chain(pairs(&self.default))
    }

    /// Whether the fields differ from request to request.
    pub fn has_variables(&self) -> bool {
        self.variables().next().is_some()
    }

    /// The variables in all values.
    pub fn variables(&self) -> impl Iterator<Item = &FieldVariable> {
        self.all().flat_map(|(_, value)| value.variables())
    }
}

fn pairs(fields: &[(String, FieldValue)]) -> impl Iterator<Item = (&str, &FieldValue)> {
    fields.iter().map(|(name, value)| (name.as_str(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(texts: &[(&str, &str)]) -> Vec<(String, FieldValue)> {
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
