//! What nodes of a cluster are called, and where they are.

use std::net::{Ipv6Addr, SocketAddr};

use super::kind::{Kind, Reading};
use super::origin_url::OriginUrl;
use super::origins::Url;
use super::raw::Node;
use super::shown::Shown;
use super::text::{TextOf, Wrong};

/// The URL of a node. All nodes have the same paths as the clients see.
pub(crate) struct NodeUrl;

impl Kind for NodeUrl {
    type Value = OriginUrl;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "\"http://HOST:PORT\", \"https://HOST\" or \"unix:/path\"".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<OriginUrl> {
        let url = Url.read(node, reading)?;
        if let Some(path) = &url.path {
            let label = format!("expected no `{path}`: a node is asked for the paths that clients ask for");
            reading.refuse(node.span(), "is not the URL of a node", label);
            return None;
        }
        Some(url)
    }

    fn write(&self, value: &OriginUrl) -> toml::Value {
        Url.write(value)
    }
}

/// Where a handoff agent listens.
pub(crate) struct AgentAddress;

impl Kind for AgentAddress {
    type Value = SocketAddr;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "an IP address with a port such as \"10.0.0.11:7946\"".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<SocketAddr> {
        let text = node.get_ref().as_str();
        let address = text.and_then(|text| match text.strip_prefix(':') {
            Some(port) => port.parse().ok().map(|port: u16| (Ipv6Addr::UNSPECIFIED, port).into()),
            None => text.parse().ok(),
        });
        address.or_else(|| reading.mismatch(node, &self.accepted()))
    }

    fn write(&self, value: &SocketAddr) -> toml::Value {
        value.to_string().into()
    }
}

/// The name of a node: a word that a log line can have without quotes.
pub(crate) const NODE_NAME: TextOf = TextOf {
    accepted: "a name of letters, digits and `.-_:[]`",
    check: |name| {
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
        match name.bytes().all(is_fine) && name.len() <= NAME_BYTES_MAX {
            true => Ok(name),
            false => Err(Wrong::new(
                "is not a name",
                format!("expected up to {NAME_BYTES_MAX} letters, digits and `.-_:[]`"),
            )),
        }
    },
};

const NAME_BYTES_MAX: usize = 64;

/// How the URLs begin that clients are sent to.
pub(crate) const PUBLIC: TextOf = TextOf {
    accepted: "\"http://HOST\" or \"https://HOST\"",
    check: |url| {
        let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let is_host = |host: &str| {
            !host.is_empty()
                && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte))
        };
        match host {
            Some(host) if is_host(host) => Ok(url),
            _ => Err(Wrong::new("is not a URL of a node", "expected `http://` or `https://`, and a host")),
        }
    },
};
