//! `cors`: which pages of other origins may read responses.

use baton_http::field_name_is_safe;
use baton_site::cors::{BadOrigin, OriginPattern, Origins};

use super::duration::Seconds;
use super::error::Complaint;
use super::files::Files;
use super::kind::{Flag, Kind, ListOf, Or, Reading};
use super::method_name::MethodName;
use super::raw::{Node, Value};
use super::schema::Schema;
use super::setting::{Inline, Table, settings};
use super::shown::Shown;
use super::text::{Text, TextOf, Wrong};

settings! {
    /// Pages of other origins that may read responses (CORS), and what they may ask for.
    Cors in "site.cors" needs ["origins"] {
        /// Origins of the pages: `["https://app.example", "https://*.example.com"]`. `*.` stands for one or more labels of a
        /// host, `:*` for any port, `"null"` for pages without an origin. `"*"`: all, which then get no credentials.
        origins: Origins = Origins::All, OriginsKind;
        /// Methods that pages may use.
        methods: Vec<String> = USUAL_METHODS.map(str::to_owned).into(), ListOf(MethodName);
        /// Fields that requests of pages may have, beside those of every form. `any`: whatever a page asks for.
        headers: Option<Vec<String>> = None, Or("any", ListOf(FIELD_NAME));
        /// Fields of responses that pages may read, beside `Content-Type` and a few others. `["*"]`: all.
        expose: Vec<String> = Vec::new(), ListOf(EXPOSED_NAME);
        /// Whether requests of pages may have cookies and passwords. It needs a list of origins.
        credentials: bool = false, Flag;
        /// Seconds, or a duration, for which browsers remember what they were told before a request: at most 2 h in Chromium,
        /// 24 h in Firefox.
        max_age: u64 = 600, Seconds(0, 86_400);
    }
}

/// Methods of applications.
const USUAL_METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/// `"*"`, an origin, several, or a table that says more.
pub(crate) struct CorsKind;

impl Kind for CorsKind {
    type Value = Cors;

    const SHOWN: Shown = Inline::<Cors>::SHOWN.or_value();

    fn accepted(&self) -> String {
        format!("{}, or {}", OriginsKind.accepted(), Inline::<Cors>::new().accepted())
    }

    fn schema(&self) -> Schema {
        Schema::either([OriginsKind.schema(), Inline::<Cors>::new().schema()])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Cors> {
        let Value::Table(entries) = node.get_ref() else {
            return OriginsKind.read(node, reading).map(|origins| Cors { origins, ..Cors::default() });
        };
        let cors = Inline::<Cors>::new().read(node, reading)?;
        let place = entries.get("credentials").map_or_else(|| node.span(), Node::span);
        let open = match &cors.origins {
            _ if !cors.credentials => None,
            Origins::All => Some("every site could read what the user sees here"),
            Origins::Some(some) if some.contains(&OriginPattern::Null) => {
                Some("any site can make a page whose origin is `null`, and read what the user sees here")
            }
            Origins::Some(_) => None,
        };
        if let Some(why) = open {
            let complaint = reading.complaint("gives credentials to any page").at(place, why);
            reading
                .complain(complaint.help("list the origins whose pages are yours, or remove `credentials`"));
            return None;
        }
        if cors.credentials && cors.expose.iter().any(|name| name == ALL) {
            let complaint = reading.complaint("exposes a field with the name `*`");
            let complaint = complaint.at(place, "with credentials, browsers take `*` for a name");
            reading.complain(complaint.help("list the fields in `expose`"));
            return None;
        }
        Some(cors)
    }

    fn write(&self, value: &Cors) -> toml::Value {
        Inline::<Cors>::new().write(value)
    }
}

/// `"*"`, an origin, or several.
struct OriginsKind;

impl Kind for OriginsKind {
    type Value = Origins;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        format!("\"*\", {}, or an array of such", OriginKind.accepted())
    }

    fn schema(&self) -> Schema {
        Schema::one_or_several(OriginKind.schema())
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Origins> {
        let elements = match node.get_ref() {
            Value::String(text) if text == ALL => return Some(Origins::All),
            Value::String(_) => return OriginKind.read(node, reading).map(|one| Origins::Some(vec![one])),
            Value::Array(elements) => elements,
            _ => return reading.mismatch(node, &self.accepted()),
        };
        if elements.is_empty() {
            let complaint = reading.complaint("allows no origin").at(node.span(), "is empty");
            reading.complain(complaint.help("name origins, or write `cors = \"off\"`"));
            return None;
        }
        if elements.iter().any(|element| element.get_ref().as_str() == Some(ALL)) {
            if elements.len() == 1 {
                return Some(Origins::All);
            }
            let complaint = reading.complaint("allows all origins, and some");
            reading.complain(complaint.at(node.span(), "with `*`, the others have no effect"));
            return None;
        }
        ListOf(OriginKind).read(node, reading).map(Origins::Some)
    }

    fn write(&self, value: &Origins) -> toml::Value {
        match value {
            Origins::All => ALL.into(),
            Origins::Some(patterns) => ListOf(OriginKind).write(patterns),
        }
    }
}

/// One origin, or those of several hosts or ports.
struct OriginKind;

impl Kind for OriginKind {
    type Value = OriginPattern;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "an origin such as \"https://app.example\"".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<OriginPattern> {
        let text = Text.read(node, reading)?;
        let why = match text.parse() {
            Ok(pattern) => return Some(pattern),
            Err(why) => why,
        };
        let expected = match why {
            BadOrigin::Scheme => format!("expected a scheme in front, as in \"https://{text}\""),
            BadOrigin::Path => "an origin ends behind its host or port: it has no path, not even `/`".into(),
            BadOrigin::Host => {
                "expected a host in ASCII; `*.` may stand in place of its first labels, as in \"https://*.example.com\"".into()
            }
            BadOrigin::Port => "expected a port from 1 to 65535, or `*`".into(),
        };
        reading.refuse(node.span(), "has a bad origin", expected);
        None
    }

    fn write(&self, value: &OriginPattern) -> toml::Value {
        value.to_string().into()
    }
}

/// The name of a field of requests.
const FIELD_NAME: TextOf = TextOf {
    accepted: "the name of a field",
    check: |name| match name != ALL && field_name_is_safe(name.as_bytes()) {
        true => Ok(name),
        false => Err(Wrong::new("has a bad field name", "expected letters, digits and hyphens")),
    },
};

/// The name of a field of responses, or all.
const EXPOSED_NAME: TextOf = TextOf {
    accepted: "the name of a field, or \"*\"",
    check: |name| match field_name_is_safe(name.as_bytes()) {
        true => Ok(name),
        false => Err(Wrong::new("has a bad field name", "expected letters, digits and hyphens")),
    },
};

/// Complains about fields that `cors` writes and `headers` does, too, if one of them stands in this table.
pub(crate) fn check_headers(
    cors: Option<&Cors>,
    files: &Files,
    table: &Table<'_>,
    reading: &mut Reading<'_>,
) {
    let is_of_cors = |name: &str| name.to_ascii_lowercase().starts_with("access-control-");
    let Some((name, _)) = files.headers.all().find(|(name, _)| cors.is_some() && is_of_cors(name)) else {
        return;
    };
    let complaint = Complaint::new(format!("`cors` and `headers` both write {name}"));
    let places = [("headers", "writes it"), ("cors", "writes it as well")];
    let places = places.into_iter().filter_map(|(key, label)| Some((table.span_of(key)?, label)));
    let complaint = places.clone().fold(complaint, |complaint, (at, label)| complaint.at(at, label));
    if places.count() > 0 {
        reading.complain(complaint.help("remove the field from `headers`"));
    }
}

/// Every origin, or every field.
pub(crate) const ALL: &str = "*";
