//! `when` and its like: conditions on requests.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use baton_http::field_name_is_safe;
use baton_pattern::{GlobExtent, TextPatterns};
use baton_site::condition::{Condition, Subject, Test, Wanted};

use super::client_addresses::{ClientAddress, ClientAddressKind, address_set, holder_in};
use super::kind::{Flag, Kind, ListOf, Or, Reading};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::setting::{Inline, Section, settings};
use super::shown::Shown;
use super::text::{FilePath, Text};

settings! {
    /// A condition on requests: `when` of a route and of a `rate_limit`, `deny_when`, `bypass_when` of a `cache`, `access_log_when`.
    /// All of its keys have to hold. A value is a text, in which `*` is any run of characters and `?` one, or a regular expression
    /// behind `~`; `!` in front excludes what it matches. Of an array, one without `!` has to match, and none with it. `true` is any
    /// value, `false` none. See `docs/conditions.md`.
    When in "when" {
        /// Methods: `["POST", "PUT"]`, or `"!GET"` for all others. `GET` brings `HEAD` along.
        method: Option<Texts> = None, Or("any", METHODS);
        /// Clients, by address: `"10.0.0.0/8"`, `["!10.0.0.0/8", "!unix:"]`.
        from: Option<Clients> = None, Or("any", ClientsKind);
        /// Fields, by name: `{ X-Beta = "1", Accept-Language = "de*" }`.
        header: Vec<(String, Texts)> = Vec::new(), Named { what: "field", check: is_field_name };
        /// Cookies, by name: `{ session = true }`.
        cookie: Vec<(String, Texts)> = Vec::new(), Named { what: "cookie", check: is_cookie_name };
        /// Parameters of the query, by name: `{ debug = "1" }`.
        query: Vec<(String, Texts)> = Vec::new(), Named { what: "parameter", check: |_| true };
        /// The client's program (`User-Agent`), by a part of its name in upper or lower case: `["GPTBot", "ccbot"]`, or
        /// `{ file = "/etc/baton/crawlers.txt" }` with a name in each line.
        user_agent: Option<Texts> = None, Or("any", USER_AGENT);
        /// Whether the client has a certificate of the authorities that `client_certificates` names.
        client_certificate: Option<bool> = None, Or("any", Flag);
    }
}

impl When {
    /// What the machines make of it.
    pub(crate) fn plan(&self) -> Arc<Condition> {
        let mut tests = Vec::new();
        let mut test = |subject: Subject, shown: String, wanted: &Wanted, written: toml::Value| {
            tests.push(Test { subject, wanted: wanted.clone(), text: format!("{shown} = {written}") });
        };
        if let Some(texts) = &self.method {
            test(Subject::Method, "method".into(), &texts.wanted, texts.write());
        }
        if let Some(clients) = &self.from {
            test(Subject::From, "from".into(), &clients.wanted(), ClientsKind.write(clients));
        }
        for (name, texts) in &self.header {
            test(Subject::Header(name.clone()), format!("header {name}"), &texts.wanted, texts.write());
        }
        for (name, texts) in &self.cookie {
            test(Subject::Cookie(name.clone()), format!("cookie {name}"), &texts.wanted, texts.write());
        }
        for (name, texts) in &self.query {
            test(Subject::Query(name.clone()), format!("query {name}"), &texts.wanted, texts.write());
        }
        if let Some(texts) = &self.user_agent {
            test(Subject::Header("User-Agent".into()), "user_agent".into(), &texts.wanted, texts.write());
        }
        if let Some(is_there) = self.client_certificate {
            let wanted = if is_there { Wanted::Present } else { Wanted::Absent };
            test(Subject::ClientCertificate, "client_certificate".into(), &wanted, is_there.into());
        }
        Arc::new(Condition::new(tests))
    }
}

/// What is tested, for the names of routes. Values of fields and cookies, which may be secrets, are told apart and not shown.
impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tested = Vec::new();
        if let Some(texts) = &self.method {
            tested.push(format!("method {}", texts.write()));
        }
        if let Some(clients) = &self.from {
            tested.push(format!("from {}", ClientsKind.write(clients)));
        }
        for (part, named) in [("header", &self.header), ("cookie", &self.cookie), ("query", &self.query)] {
            for (name, texts) in named {
                let mut hasher = DefaultHasher::new();
                texts.write().to_string().hash(&mut hasher);
                tested.push(format!("{part} {name} #{:04x}", hasher.finish() as u16));
            }
        }
        if let Some(texts) = &self.user_agent {
            tested.push(format!("user_agent {}", texts.write()));
        }
        if let Some(is_there) = self.client_certificate {
            tested.push(format!("client_certificate {is_there}"));
        }
        f.write_str(&tested.join(", "))
    }
}

/// A condition that tests something.
pub(crate) struct WhenKind;

impl Kind for WhenKind {
    type Value = When;

    const SHOWN: Shown = Inline::<When>::SHOWN;

    fn accepted(&self) -> String {
        Inline::<When>::new().accepted()
    }

    fn schema(&self) -> Schema {
        Inline::<When>::new().schema()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<When> {
        let when = Inline::<When>::new().read(node, reading)?;
        if when == When::default() {
            let complaint = reading.complaint("holds for every request").at(node.span(), "tests nothing");
            reading.complain(complaint.help("name what has to hold, or remove it"));
            return None;
        }
        Some(when)
    }

    fn write(&self, value: &When) -> toml::Value {
        // What tests nothing is left out: it is no shorter way to say it.
        let default = When::default().write();
        let keys = When::settings().into_iter().map(|setting| setting.name.to_owned());
        let set = keys.zip(value.write()).zip(default).filter(|((_, value), default)| value != default);
        toml::Value::Table(set.map(|(set, _)| set).collect())
    }
}

/// What a part of a request has to be.
#[derive(Clone, Debug)]
pub struct Texts {
    written: Written,
    wanted: Wanted,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Written {
    Presence(bool),
    List(Vec<String>),
    File(String),
}

/// Equal texts are written alike.
impl PartialEq for Texts {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for Texts {}

impl Texts {
    /// Its texts, if none of them is a pattern or excluded.
    pub(crate) fn plain(&self) -> Option<&[String]> {
        match &self.written {
            Written::List(texts) if texts.iter().all(|text| !text.contains(['*', '?', '~', '!'])) => {
                Some(texts)
            }
            _ => None,
        }
    }

    fn write(&self) -> toml::Value {
        match &self.written {
            Written::Presence(is_there) => (*is_there).into(),
            Written::List(texts) if let [only] = &texts[..] => only.as_str().into(),
            Written::List(texts) => texts.iter().map(String::as_str).collect::<Vec<_>>().into(),
            Written::File(path) => {
                toml::Value::Table([("file".to_owned(), path.as_str().into())].into_iter().collect())
            }
        }
    }
}

/// Texts for a part of a request.
struct TextsKind {
    extent: GlobExtent,
    /// Complains of a text that no request has there.
    check: fn(&str) -> Result<(), &'static str>,
    /// Whether a request may have nothing there.
    may_lack: bool,
    /// Whether a file may have them.
    takes_file: bool,
}

const VALUES: TextsKind =
    TextsKind { extent: GlobExtent::Whole, check: |_| Ok(()), may_lack: true, takes_file: false };

const USER_AGENT: TextsKind =
    TextsKind { extent: GlobExtent::PartInAnyCase, check: |_| Ok(()), may_lack: true, takes_file: true };

const METHODS: TextsKind = TextsKind {
    extent: GlobExtent::Whole,
    check: |text| match text.starts_with('~') || !text.contains(|letter: char| letter.is_ascii_lowercase()) {
        true => Ok(()),
        false => Err("methods are in upper case"),
    },
    may_lack: false,
    takes_file: false,
};

impl Kind for TextsKind {
    type Value = Texts;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        let presence = if self.may_lack { ", true or false" } else { "" };
        let file = if self.takes_file { ", or { file = \"PATH\" } with one in each line" } else { "" };
        format!(
            "a text such as \"a*\" or \"~regex\", \"!…\" for what is excluded, or an array of these{presence}{file}"
        )
    }

    fn schema(&self) -> Schema {
        Schema::either([
            Schema::BOOLEAN,
            Schema::one_or_several(Schema::TEXT),
            Schema::table_of(Schema::TEXT),
        ])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Texts> {
        match node.get_ref() {
            Value::Boolean(is_there) if self.may_lack => {
                let wanted = if *is_there { Wanted::Present } else { Wanted::Absent };
                Some(Texts { written: Written::Presence(*is_there), wanted })
            }
            Value::String(_) => {
                let text = Text.read(node, reading)?;
                self.compiled(vec![text], &[node], reading)
            }
            Value::Array(elements) => {
                let texts = ListOf(Text).read(node, reading)?;
                if texts.is_empty() {
                    reading.refuse(node.span(), "is empty", "expected at least one text");
                    return None;
                }
                self.compiled(texts, &elements.iter().collect::<Vec<_>>(), reading)
            }
            Value::Table(entries)
                if self.takes_file && entries.len() == 1 && entries.contains_key("file") =>
            {
                let path = FilePath.read(&entries["file"], reading)?;
                self.of_file(&path, node, reading)
            }
            _ => reading.mismatch(node, &self.accepted()),
        }
    }

    fn write(&self, value: &Texts) -> toml::Value {
        value.write()
    }
}

impl TextsKind {
    /// The texts, which stand at these places.
    fn compiled(&self, texts: Vec<String>, places: &[&Node], reading: &mut Reading<'_>) -> Option<Texts> {
        let before = reading.complaints.len();
        for (text, place) in texts.iter().zip(places) {
            if let Err(why) = (self.check)(text.trim_start_matches('!')) {
                reading.refuse(place.span(), "has a text that no request has", why);
            }
        }
        if reading.complaints.len() > before {
            return None;
        }
        match self.wanted(&texts) {
            Ok(wanted) => Some(Texts { written: Written::List(texts), wanted }),
            Err((at, why)) => {
                let span = places.get(at).map(|place| place.span()).unwrap_or_default();
                reading.refuse(span, "has a bad pattern", why);
                None
            }
        }
    }

    fn of_file(&self, path: &Path, node: &Node, reading: &mut Reading<'_>) -> Option<Texts> {
        let mut refuse = |why: String| {
            reading.refuse(node.span(), "has a file that cannot be used", format!("{}{why}", path.display()));
            None
        };
        let text = match std::fs::read_to_string(path) {
            Ok(text) if text.len() > FILE_BYTES_MAX => {
                return refuse(format!(": it has more than {FILE_BYTES_MAX} bytes"));
            }
            Ok(text) => text,
            Err(error) => return refuse(format!(": {error}")),
        };
        let lines = text.lines().map(str::trim).zip(1..);
        let lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
        let (texts, numbers): (Vec<String>, Vec<usize>) =
            lines.map(|(line, number)| (line.to_owned(), number)).unzip();
        if texts.is_empty() {
            return refuse(" has no names".into());
        }
        match self.wanted(&texts) {
            Ok(wanted) => Some(Texts { written: Written::File(path.display().to_string()), wanted }),
            Err((at, why)) => refuse(format!(":{}: {why}", numbers.get(at).copied().unwrap_or_default())),
        }
    }

    /// What the texts want, or the place of one that is no pattern, and why.
    fn wanted(&self, texts: &[String]) -> Result<Wanted, (usize, String)> {
        let compile = |is_excluded: bool| {
            let places: Vec<_> =
                (0..texts.len()).filter(|at| texts[*at].starts_with('!') == is_excluded).collect();
            let mut chosen: Vec<&str> =
                places.iter().map(|at| texts[*at].strip_prefix('!').unwrap_or(&texts[*at])).collect();
            if chosen.is_empty() {
                return Ok(None);
            }
            // As `methods` has it.
            if chosen.contains(&"GET") && !chosen.contains(&"HEAD") {
                chosen.push("HEAD");
            }
            let compiled = TextPatterns::compile(&chosen, self.extent);
            compiled.map(Some).map_err(|(at, why)| (places.get(at).copied().unwrap_or(0), why.to_string()))
        };
        Ok(Wanted::Text { any: compile(false)?, none: compile(true)? })
    }
}

/// Texts by the names of parts of a request.
struct Named {
    what: &'static str,
    check: fn(&str) -> bool,
}

fn is_field_name(name: &str) -> bool {
    field_name_is_safe(name.as_bytes())
}

fn is_cookie_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', ';', ' '])
}

impl Kind for Named {
    type Value = Vec<(String, Texts)>;

    // Values may be secrets.
    const SHOWN: Shown = Shown::Names;

    fn accepted(&self) -> String {
        format!("a table by {}: {{ NAME = \"VALUE\" }}", self.what)
    }

    fn schema(&self) -> Schema {
        Schema::table_of(VALUES.schema())
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Vec<(String, Texts)>> {
        let Value::Table(entries) = node.get_ref() else {
            return reading.mismatch(node, &self.accepted());
        };
        let mut named = Some(Vec::new());
        for (key, value) in entries {
            let name = key.get_ref();
            let is_fine = (self.check)(name);
            if !is_fine {
                reading.refuse(key.span(), "has a bad name", format!("no {} is called so", self.what));
            }
            let texts = VALUES.read(value, reading).filter(|_| is_fine);
            named = named.zip(texts).map(|(mut named, texts)| {
                named.push((name.clone(), texts));
                named
            });
        }
        named
    }

    fn write(&self, value: &Vec<(String, Texts)>) -> toml::Value {
        toml::Value::Table(value.iter().map(|(name, texts)| (name.clone(), texts.write())).collect())
    }
}

/// Clients, and clients that are excluded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clients {
    any: Vec<ClientAddress>,
    none: Vec<ClientAddress>,
}

impl Clients {
    fn wanted(&self) -> Wanted {
        let any = (!self.any.is_empty()).then(|| address_set(&self.any));
        Wanted::Address { any, none: address_set(&self.none) }
    }
}

struct ClientsKind;

impl Kind for ClientsKind {
    type Value = Clients;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        format!(
            "{}, with `!` in front of one that is excluded, or an array of these",
            ClientAddressKind.accepted()
        )
    }

    fn schema(&self) -> Schema {
        Schema::one_or_several(Schema::TEXT)
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Clients> {
        let elements = match node.get_ref() {
            Value::Array(elements) => elements.iter().collect(),
            _ => vec![node],
        };
        if elements.is_empty() {
            reading.refuse(node.span(), "is empty", "expected at least one address: it would never hold");
            return None;
        }
        let (mut clients, mut all_are_fine) = (Clients::default(), true);
        for element in elements {
            let excluded = element.get_ref().as_str().and_then(|text| text.strip_prefix('!'));
            let list = if excluded.is_some() { &mut clients.none } else { &mut clients.any };
            let plain = excluded.map(|text| Node::new(element.span(), Value::String(text.to_owned())));
            match ClientAddressKind.read(plain.as_ref().unwrap_or(element), reading) {
                Some(client) => list.push(client),
                None => all_are_fine = false,
            }
        }
        let Clients { any, none } = &clients;
        let excluded = address_set(none);
        if !any.is_empty() && any.iter().all(|client| holder_in(&excluded, client).is_some()) {
            reading.refuse(node.span(), "never holds", "every client of it is excluded as well");
            return None;
        }
        all_are_fine.then_some(clients)
    }

    fn write(&self, value: &Clients) -> toml::Value {
        let text = |client: &ClientAddress| match ClientAddressKind.write(client) {
            toml::Value::String(text) => text,
            other => other.to_string(),
        };
        let excluded = value.none.iter().map(|client| format!("!{}", text(client)));
        value.any.iter().map(text).chain(excluded).collect::<Vec<_>>().into()
    }
}

/// Bytes of a file of names.
const FILE_BYTES_MAX: usize = 1 << 20;
