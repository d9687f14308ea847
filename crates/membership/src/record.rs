//! What etcd has of a node: JSON values, written by nodes and operators, and checked like any input.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a node says of itself: the value of `nodes/NAME`, under the node's lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// The form of the value: [`Self::VERSION`].
    pub version: u32,
    /// Its URL for front-ends, without a path.
    pub to: String,
    /// How much it takes, in relation to the others: 1 to 100.
    #[serde(default = "usual_weight")]
    pub weight: u32,
    /// Whether it wants requests.
    #[serde(default)]
    pub state: NodeState,
    /// Where its handoff agent takes connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mover: Option<String>,
    /// Its URL for clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public: Option<String>,
    /// Greater each time that the node begins.
    #[serde(default)]
    pub epoch: u64,
    /// Whether it says what it has left while it is drained.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tells_left: bool,
    /// What that is: connections of front-ends, or requests if it has no handoff agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u64>,
}

/// Whether a node wants requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeState {
    /// The node takes requests.
    #[default]
    Up,
    /// The node is about to end.
    Leaving,
}

/// What an operator says of a node: the value of `orders/NAME`, without a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directive {
    /// Whether it gets no new requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
    /// Its weight instead of its own: 1 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// Why a value does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skip {
    /// The key has no name of a node.
    Name,
    /// The key is none that this version knows.
    Key,
    /// The value is longer than [`RECORD_BYTES_MAX`].
    TooLong(usize),
    /// The value is not the JSON of a node.
    Json(String),
    /// The value is of a newer version.
    Version(u32),
    /// The URL is none that a node can have.
    Url,
    /// The weight is not from 1 to 100.
    Weight(u32),
    /// An address is none.
    Address(&'static str),
    /// There are enough nodes.
    TooMany,
}

impl Registration {
    /// The version that this code writes, and reads.
    pub const VERSION: u32 = 1;

    /// Reads a value.
    ///
    /// # Errors
    /// Why it does not count.
    pub fn parse(value: &[u8]) -> Result<Self, Skip> {
        let read: Self = json(value)?;
        if read.version != Self::VERSION {
            return Err(Skip::Version(read.version));
        }
        if !is_url(&read.to) {
            return Err(Skip::Url);
        }
        check_weight(read.weight)?;
        if !read.mover.as_deref().is_none_or(is_authority) {
            return Err(Skip::Address("mover"));
        }
        if !read.public.as_deref().is_none_or(is_url) {
            return Err(Skip::Address("public"));
        }
        Ok(read)
    }

    /// The value.
    pub fn to_value(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and numbers are valid JSON")
    }
}

impl Directive {
    /// Reads a value.
    ///
    /// # Errors
    /// Why it does not count.
    pub fn parse(value: &[u8]) -> Result<Self, Skip> {
        let read: Self = json(value)?;
        read.weight.map_or(Ok(()), check_weight)?;
        Ok(read)
    }

    /// The value; `None`: there is nothing to say, and no value.
    pub fn to_value(self) -> Option<Vec<u8>> {
        (self != Self::default())
            .then(|| serde_json::to_vec(&self).expect("a number and a truth are valid JSON"))
    }
}

/// Whether a node can have this name: a word that a log line can have without quotes.
pub fn is_name(name: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_fine)
}

fn json<T: for<'v> Deserialize<'v>>(value: &[u8]) -> Result<T, Skip> {
    if value.len() > RECORD_BYTES_MAX {
        return Err(Skip::TooLong(value.len()));
    }
    serde_json::from_slice(value).map_err(|error| Skip::Json(error.to_string()))
}

fn check_weight(weight: u32) -> Result<(), Skip> {
    if (1..=100).contains(&weight) { Ok(()) } else { Err(Skip::Weight(weight)) }
}

/// `http://HOST:PORT` and nothing else: what follows is checked again where it is used.
fn is_url(url: &str) -> bool {
    let authority = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    authority.is_some_and(is_authority)
}

fn is_authority(text: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    (1..=AUTHORITY_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_fine)
}

fn usual_weight() -> u32 {
    1
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => {
                write!(f, "not the name of a node: up to {NAME_BYTES_MAX} letters, digits and `.-_:[]`")
            }
            Self::Key => f.write_str("not a key of a cluster"),
            Self::TooLong(bytes) => write!(f, "{bytes} bytes, more than {RECORD_BYTES_MAX}"),
            Self::Json(why) => write!(f, "not the JSON of a node: {why}"),
            Self::Version(version) => {
                write!(f, "of version {version}: this server knows {}", Registration::VERSION)
            }
            Self::Url => f.write_str("its `to` is not http://HOST:PORT or https://HOST:PORT"),
            Self::Weight(weight) => write!(f, "its weight {weight} is not from 1 to 100"),
            Self::Address(key) => write!(f, "its `{key}` is not an address"),
            Self::TooMany => f.write_str("one node too many"),
        }
    }
}

/// A value has some two hundred bytes.
pub const RECORD_BYTES_MAX: usize = 4_096;

/// As long as the configuration lets a name be.
const NAME_BYTES_MAX: usize = 64;

/// A host name has 253 bytes at most.
const AUTHORITY_BYTES_MAX: usize = 262;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_value_has_the_usual_rest() {
        let read = Registration::parse(br#"{"version":1,"to":"http://10.0.0.1:8080","new":[1]}"#).unwrap();
        assert_eq!((read.weight, read.state, read.epoch), (1, NodeState::Up, 0));
        assert_eq!(Registration::parse(&read.to_value()), Ok(read));
        let order = Directive { drained: true, weight: Some(7) };
        assert_eq!(Directive::parse(&order.to_value().unwrap()), Ok(order));
        assert_eq!(Directive::default().to_value(), None);
    }

    #[test]
    fn values_that_no_node_writes_are_told_apart() {
        for (value, words) in [
            ("", "not the JSON"),
            ("[1]", "not the JSON"),
            (r#"{"version":2,"to":"http://a"}"#, "version 2"),
            (r#"{"version":1,"to":"ftp://a"}"#, "`to`"),
            (r#"{"version":1,"to":"http://a/b"}"#, "`to`"),
            (r#"{"version":1,"to":"http://u@a"}"#, "`to`"),
            (r#"{"version":1,"to":"http://a b"}"#, "`to`"),
            (r#"{"version":1,"to":"http://a","weight":0}"#, "weight 0"),
            (r#"{"version":1,"to":"http://a","weight":101}"#, "weight 101"),
            (r#"{"version":1,"to":"http://a","weight":-1}"#, "not the JSON"),
            (r#"{"version":1,"to":"http://a","state":"gone"}"#, "not the JSON"),
            (r#"{"version":1,"to":"http://a","mover":"a b"}"#, "`mover`"),
            (r#"{"version":1,"to":"http://a","public":"b"}"#, "`public`"),
        ] {
            let skip = Registration::parse(value.as_bytes()).expect_err(value);
            assert!(skip.to_string().contains(words), "{value}: {skip}");
        }
        assert_eq!(Registration::parse(&[b' '; RECORD_BYTES_MAX + 1]), Err(Skip::TooLong(4_097)));
        assert!(is_name("[::1]:80") && !is_name("") && !is_name("a/b") && !is_name(&"a".repeat(65)));
    }
}
