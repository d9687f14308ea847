//! What a value may be, as JSON Schema says it to editors. Each kind of setting has one.

use serde_json::{Map, Value, json};

/// What a value may be.
#[derive(Clone, Debug)]
pub enum Schema {
    /// Anything.
    Any,
    /// One of JSON's types, by its name.
    Type(&'static str),
    /// A string with a variable of the environment, which may stand for a word, a number or a boolean.
    Variable,
    /// This string.
    Word(&'static str),
    /// An integer from one to the other.
    Integer(u64, u64),
    /// One of these.
    Either(Vec<Self>),
    /// An array of such.
    List(Box<Self>),
    /// A table with any keys, and such values.
    Table(Box<Self>),
    /// A table with these keys, some of which are needed.
    Object(Vec<(&'static str, Self)>, &'static [&'static str]),
    /// One with its documentation and, unless it must be given, its default.
    Documented(Box<Self>, String, Option<toml::Value>),
}

impl Schema {
    pub(crate) const TEXT: Self = Self::Type("string");
    pub(crate) const BOOLEAN: Self = Self::Type("boolean");

    pub(crate) fn either(several: impl IntoIterator<Item = Self>) -> Self {
        Self::Either(several.into_iter().collect())
    }

    pub(crate) fn list_of(element: Self) -> Self {
        Self::List(Box::new(element))
    }

    pub(crate) fn one_or_several(element: Self) -> Self {
        Self::either([element.clone(), Self::list_of(element)])
    }

    pub(crate) fn table_of(value: Self) -> Self {
        Self::Table(Box::new(value))
    }

    /// In JSON.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Any => json!({}),
            Self::Type(name) => json!({ "type": name }),
            Self::Variable => json!({ "type": "string", "pattern": "\\{env\\." }),
            Self::Word(word) => json!({ "const": word }),
            Self::Integer(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Self::Either(several) => {
                json!({ "anyOf": several.iter().map(Self::to_json).collect::<Vec<_>>() })
            }
            Self::List(element) => json!({ "type": "array", "items": element.to_json() }),
            Self::Table(value) => json!({ "type": "object", "additionalProperties": value.to_json() }),
            Self::Object(keys, needed) => {
                let keys: Map<_, _> =
                    keys.iter().map(|(key, value)| ((*key).to_owned(), value.to_json())).collect();
                json!({ "type": "object", "properties": keys, "required": needed, "additionalProperties": false })
            }
            Self::Documented(schema, text, default) => {
                let mut schema = schema.to_json();
                schema["description"] = text.as_str().into();
                if let Some(default) = default {
                    schema["default"] = json!(default);
                }
                schema
            }
        }
    }
}
