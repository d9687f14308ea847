//! Clients by their addresses: `"10.0.0.0/8"`, `"::1"`, `"unix:"`.

use baton_site::address_range::{self, AddressRange, AddressSet, OuterRanges};

use super::kind::{Kind, ListOf, Reading};
use super::raw::Node;
use super::schema::Schema;
use super::shown::Shown;
use super::text::Text;

/// Which clients are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAddress {
    /// Clients with an address of this range.
    Range(AddressRange),
    /// Clients of Unix sockets.
    Local,
}

impl ClientAddress {
    fn range(&self) -> Option<AddressRange> {
        match self {
            Self::Range(range) => Some(*range),
            Self::Local => None,
        }
    }

    /// Whether they may be a group of proxies, rather than a network in which clients are, too.
    pub(crate) fn is_narrow(&self) -> bool {
        match self {
            Self::Range(range) => range.is_narrow(),
            Self::Local => true,
        }
    }
}

/// The set of these clients.
pub(crate) fn address_set(clients: &[ClientAddress]) -> AddressSet {
    AddressSet {
        ranges: OuterRanges::from_iter(clients.iter().filter_map(ClientAddress::range)),
        has_local: clients.contains(&ClientAddress::Local),
    }
}

/// What of a set holds all of these clients.
pub(crate) fn holder_in(set: &AddressSet, clients: &ClientAddress) -> Option<ClientAddress> {
    match clients {
        ClientAddress::Range(range) => set.ranges.covering(range).copied().map(ClientAddress::Range),
        ClientAddress::Local => set.has_local.then_some(ClientAddress::Local),
    }
}

/// The entries of a list that another one holds already, with that one.
pub(crate) fn held_twice(list: &[ClientAddress]) -> Vec<(ClientAddress, ClientAddress)> {
    let ranges: Vec<_> = list.iter().filter_map(ClientAddress::range).collect();
    let held = ranges.iter().zip(address_range::holders(&ranges));
    let held = held.filter_map(|(range, by)| Some((ClientAddress::Range(*range), ClientAddress::Range(by?))));
    let local = list.iter().filter(|client| **client == ClientAddress::Local).skip(1);
    held.chain(local.map(|client| (*client, ClientAddress::Local))).collect()
}

/// One range, or Unix sockets.
pub(crate) struct ClientAddressKind;

impl Kind for ClientAddressKind {
    type Value = ClientAddress;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "an address such as \"10.0.0.0/8\" or \"::1\", or \"unix:\"".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<ClientAddress> {
        let text = Text.read(node, reading)?;
        if text == LOCAL {
            return Some(ClientAddress::Local);
        }
        text.parse()
            .map(ClientAddress::Range)
            .map_err(|why: &str| reading.refuse(node.span(), "has a bad address", why))
            .ok()
    }

    fn write(&self, value: &ClientAddress) -> toml::Value {
        match value {
            ClientAddress::Range(range) => range.to_string().into(),
            ClientAddress::Local => LOCAL.into(),
        }
    }
}

/// Several of them: at least one.
pub(crate) struct ClientList;

impl Kind for ClientList {
    type Value = Vec<ClientAddress>;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        ListOf(ClientAddressKind).accepted()
    }

    fn schema(&self) -> Schema {
        ListOf(ClientAddressKind).schema()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Vec<ClientAddress>> {
        let clients = ListOf(ClientAddressKind).read(node, reading)?;
        if clients.is_empty() {
            reading.refuse(node.span(), "is empty", "expected at least one address");
            return None;
        }
        Some(clients)
    }

    fn write(&self, value: &Vec<ClientAddress>) -> toml::Value {
        ListOf(ClientAddressKind).write(value)
    }
}

const LOCAL: &str = "unix:";
