//! `request_id` and `traceparent` of a site: the names by which a request is found again.

use std::sync::Arc;

use baton_http::field_name_is_safe;
use baton_http::origin::field_may_be_ruled;
use baton_site::mark::{IdRule, Marking};

use super::client_addresses::{ClientAddress, ClientAddressKind, address_set};
use super::kind::{Flag, Kind, ListOf, Reading};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::setting::{Inline, settings};
use super::shown::Shown;
use super::text::{TextOf, Wrong};

/// The clients whose words are believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustedClients {
    /// All, or none.
    Any(bool),
    /// These.
    Peers(Vec<ClientAddress>),
}

settings! {
    /// Ids of requests.
    RequestId in "request_id" {
        /// The field with the id, in requests and responses.
        header: String = "X-Request-Id".into(), FIELD_NAME;
        /// Whose ids are taken: `true`, those of all clients; `["10.0.0.0/8", "unix:"]`, those of these; `false`, none.
        /// Other requests get an id of this server, whatever they say.
        trust: TrustedClients = TrustedClients::Any(false), TrustKind;
    }
}

/// The name of a field that the server may set.
const FIELD_NAME: TextOf = TextOf {
    accepted: "the name of a field",
    check: |name| {
        let is_fine = field_name_is_safe(name.as_bytes())
            && field_may_be_ruled(&name)
            && !["host", "traceparent"].iter().any(|other| baton_http::is_same_field(&name, other));
        match is_fine {
            true => Ok(name),
            false => Err(Wrong::new(
                "is no field that can have an id",
                "expected a name such as X-Request-Id, with another meaning in neither HTTP nor this server",
            )),
        }
    },
};

/// `true`, or a table: how; `false`: not at all.
pub(crate) struct RequestIdKind;

impl Kind for RequestIdKind {
    type Value = Option<RequestId>;

    const SHOWN: Shown = Inline::<RequestId>::SHOWN.or_value();

    fn accepted(&self) -> String {
        format!("{}, or {}", Flag.accepted(), Inline::<RequestId>::new().accepted())
    }

    fn schema(&self) -> Schema {
        Schema::either([Flag.schema(), Inline::<RequestId>::new().schema()])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Self::Value> {
        match reading.unquoted(node) {
            Value::Table(_) => Inline::<RequestId>::new().read(node, reading).map(Some),
            Value::Boolean(is_on) => Some(is_on.then(RequestId::default)),
            _ => reading.mismatch(node, &self.accepted()),
        }
    }

    fn write(&self, value: &Self::Value) -> toml::Value {
        match value {
            Some(id) => Inline::<RequestId>::new().write(id),
            None => false.into(),
        }
    }
}

/// All, none, or certain addresses.
struct TrustKind;

impl Kind for TrustKind {
    type Value = TrustedClients;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        format!("{}, or {}", Flag.accepted(), ListOf(ClientAddressKind).accepted())
    }

    fn schema(&self) -> Schema {
        Schema::either([Flag.schema(), ListOf(ClientAddressKind).schema()])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<TrustedClients> {
        match reading.unquoted(node) {
            Value::Array(_) => ListOf(ClientAddressKind).read(node, reading).map(TrustedClients::Peers),
            Value::Boolean(any) => Some(TrustedClients::Any(any)),
            _ => reading.mismatch(node, &self.accepted()),
        }
    }

    fn write(&self, value: &TrustedClients) -> toml::Value {
        match value {
            TrustedClients::Any(any) => (*any).into(),
            TrustedClients::Peers(peers) => ListOf(ClientAddressKind).write(peers),
        }
    }
}

impl TrustedClients {
    fn plan(&self) -> baton_site::mark::Believed {
        match self {
            Self::Any(false) => baton_site::mark::Believed::None,
            Self::Any(true) => baton_site::mark::Believed::All,
            Self::Peers(peers) => baton_site::mark::Believed::Some(address_set(peers)),
        }
    }
}

/// How the requests of a site are marked, if they are.
pub(crate) fn marking(id: Option<&RequestId>, begins_traces: bool) -> Option<Arc<Marking>> {
    let id = id.map(|id| IdRule { field: id.header.clone(), trust: id.trust.plan() });
    (id.is_some() || begins_traces).then(|| Arc::new(Marking { id, begins_traces }))
}
