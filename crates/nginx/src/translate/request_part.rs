//! Parts of a request that a `when` is about, and the values that they have to have.

use crate::written::{Keys, Value};

/// Values of a part of a request: one of `any`, where that is not empty, and none of `none`.
pub(super) struct Values {
    pub(super) any: Vec<String>,
    pub(super) none: Vec<String>,
    /// Whether a request without the part is meant, too.
    pub(super) holds_without: bool,
}

/// A part of a request that a condition of Baton is about.
pub(super) enum RequestPart {
    Method,
    From,
    /// A key of `when`, and a name.
    Named(&'static str, String),
}

impl RequestPart {
    /// What a variable of nginx stands for.
    pub(super) fn named(variable: &str) -> Option<Self> {
        let of = |beginning: &str| variable.strip_prefix(beginning).filter(|name| !name.is_empty());
        Some(match variable {
            "$request_method" => Self::Method,
            "$remote_addr" => Self::From,
            "$content_type" => Self::Named("header", "Content-Type".into()),
            // Over HTTP/2 no field has it.
            "$http_host" => return None,
            _ => match (of("$http_"), of("$cookie_"), of("$arg_")) {
                (Some(name), ..) => Self::Named("header", field_name(name)),
                (_, Some(name), _) => Self::Named("cookie", name.to_owned()),
                (.., Some(name)) => Self::Named("query", name.to_owned()),
                _ => return None,
            },
        })
    }

    /// The conditions that it has one of these values.
    pub(super) fn when(&self, values: Values) -> Option<Vec<Keys>> {
        let Values { any, none, holds_without } = values;
        if any.is_empty() && none.is_empty() {
            return None;
        }
        let is_about_absence = any.is_empty() == holds_without;
        let excluded = none.iter().map(|text| format!("!{text}"));
        let texts: Vec<_> = any.iter().cloned().chain(excluded).collect();
        let texts = |more: Option<&str>| {
            let all = more.into_iter().map(str::to_owned).chain(texts.iter().cloned());
            match &all.map(Value::from).collect::<Vec<_>>()[..] {
                [only] => only.clone(),
                several => Value::List(several.to_vec()),
            }
        };
        let one = |key: &str, value: Value| {
            let mut keys = Keys::default();
            keys.set(key, value);
            keys
        };
        Some(match self {
            // There is always one.
            Self::Method => vec![one("method", texts(None))],
            Self::From => {
                let is_address = |text: &String| text.parse::<std::net::IpAddr>().is_ok();
                if !any.iter().chain(&none).all(is_address) {
                    return None;
                }
                vec![one("from", texts(None))]
            }
            Self::Named(key, name) => {
                let named = |value: Value| one(key, Value::Table(one(name, value)));
                match (any.is_empty(), holds_without) {
                    _ if is_about_absence => vec![named(texts(None))],
                    (true, _) => vec![named(texts(Some("*")))],
                    (false, _) => vec![named(Value::Flag(false)), named(texts(None))],
                }
            }
        })
    }
}

/// The name of a field as people write it.
fn field_name(variable: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(word.len().min(1));
        format!("{}{rest}", first.to_ascii_uppercase())
    };
    variable.split('_').map(word).collect::<Vec<_>>().join("-")
}
