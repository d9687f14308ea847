//! One value of a JSON text, by a pointer (RFC 6901): the text is read as far as that, and may be the beginning of a longer one.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// A pointer to a value within an array or an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPointer {
    text: String,
    /// Names and indexes, from the outermost.
    tokens: Vec<String>,
}

impl JsonPointer {
    /// A pointer in its usual form; `None`: it does not begin with `/`.
    pub fn parse(text: &str) -> Option<Self> {
        let tokens = text.strip_prefix('/')?.split('/');
        let tokens = tokens.map(|token| token.replace("~1", "/").replace("~0", "~")).collect();
        Some(Self { text: text.to_owned(), tokens })
    }

    /// The value there: a string as it is, anything else as JSON without spaces. `None`: there is none, it is null, what comes
    /// before it is no JSON, or it does not end within `json`. Of two members with one name the first counts.
    pub fn find(&self, json: &[u8]) -> Option<Vec<u8>> {
        let mut found = None;
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let (token, rest) = self.tokens.split_first()?;
        // It has an error where the search has stopped, too.
        let _ = deserializer.deserialize_any(Step { token, rest, found: &mut found });
        match found? {
            Value::Null => None,
            Value::String(text) => Some(text.into_bytes()),
            other => Some(other.to_string().into_bytes()),
        }
    }
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A look for one member of an array or an object.
struct Step<'a> {
    token: &'a str,
    rest: &'a [String],
    found: &'a mut Option<Value>,
}

impl<'de> DeserializeSeed<'de> for Step<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Step<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array or an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            if name != self.token {
                map.next_value::<IgnoredAny>()?;
            } else if let Some((token, rest)) = self.rest.split_first() {
                map.next_value_seed(Step { token, rest, found: self.found })?;
                return Err(A::Error::custom(STOPPED));
            } else {
                let value = map.next_value()?;
                // A number may go on behind the end of the text, unless something follows it.
                map.next_key::<IgnoredAny>()?;
                *self.found = Some(value);
                return Err(A::Error::custom(STOPPED));
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        let Some(index) = index(self.token) else { return Err(A::Error::custom(STOPPED)) };
        for _ in 0..index {
            if sequence.next_element::<IgnoredAny>()?.is_none() {
                return Ok(());
            }
        }
        match self.rest.split_first() {
            Some((token, rest)) => {
                sequence.next_element_seed(Step { token, rest, found: self.found })?;
            }
            None => {
                let value = sequence.next_element()?;
                sequence.next_element::<IgnoredAny>()?;
                *self.found = value;
            }
        }
        Err(A::Error::custom(STOPPED))
    }
}

/// An index has no sign and no leading zero.
fn index(token: &str) -> Option<usize> {
    let is_plain = token == "0" || token.starts_with(|first: char| ('1'..='9').contains(&first));
    token.parse().ok().filter(|_| is_plain)
}

const STOPPED: &str = "the search has ended";
