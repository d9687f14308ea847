//! A value of a parameter: a number or a word, as the file has it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use toml::de::DeValue;

/// A value of a parameter, by its text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(crate) struct Scalar(pub(crate) String);

impl Scalar {
    /// As a value in a file, if it is none of several values.
    pub(super) fn of(value: &DeValue<'_>) -> Option<Self> {
        Some(Self(match value {
            DeValue::String(text) => text.clone().into_owned(),
            DeValue::Integer(number) => number.as_str().to_owned(),
            DeValue::Float(number) => number.as_str().to_owned(),
            DeValue::Boolean(value) => value.to_string(),
            DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => return None,
        }))
    }

    /// Where it stands on an axis, if it is a number.
    pub(crate) fn number(&self) -> Option<f64> {
        self.0.replace('_', "").parse().ok()
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<&str> for Scalar {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match toml::Value::deserialize(deserializer)? {
            toml::Value::String(text) => Self(text),
            other => Self(other.to_string()),
        })
    }
}
