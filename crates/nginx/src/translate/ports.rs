//! Addresses of servers, and in which form Baton listens there.

use std::collections::BTreeSet;

use crate::tree::Directive;

/// Where the servers of a configuration listen.
#[derive(Clone, Debug, Default)]
pub(super) struct Ports {
    /// Ports of all addresses.
    of_v4: BTreeSet<u16>,
    of_v6: BTreeSet<u16>,
    /// Addresses, as they are written, whose connections begin with the PROXY protocol.
    announced: BTreeSet<String>,
    /// Addresses with TLS, which is a property of the address, too.
    with_tls: BTreeSet<String>,
}

/// An address of nginx.
pub(super) enum Address<'a> {
    EveryV4(u16),
    EveryV6(u16),
    One(&'a str, u16),
    Local(&'a str),
}

impl Ports {
    pub(super) fn of(servers: &[&Directive]) -> Self {
        let mut ports = Self::default();
        for server in servers {
            let listens = listens(server);
            for listen in &listens {
                match address(listen.argument(0)) {
                    Some(Address::EveryV4(port)) => ports.of_v4.insert(port),
                    Some(Address::EveryV6(port)) => ports.of_v6.insert(port),
                    Some(Address::One(..) | Address::Local(_)) | None => false,
                };
            }
            if listens.is_empty() {
                ports.of_v4.insert(80);
            }
        }
        // Only now it is known how an address is written.
        let written_with = |options: &[&str]| {
            let all = servers.iter().flat_map(|server| listens(server));
            let those = all.filter(|listen| options.iter().any(|option| has(listen, option)));
            let addresses = those.filter_map(|listen| address(listen.argument(0)));
            addresses.map(|address| ports.written(&address)).collect()
        };
        (ports.announced, ports.with_tls) =
            (written_with(&["proxy_protocol"]), written_with(&["ssl", "quic"]));
        ports
    }

    /// Whether connections to an address begin with the PROXY protocol. It is so for all servers there if one says so.
    pub(super) fn is_announced(&self, written: &str) -> bool {
        self.announced.contains(written)
    }

    /// Whether clients of an address speak TLS.
    pub(super) fn is_tls(&self, written: &str) -> bool {
        self.with_tls.contains(written)
    }

    /// In the form that Baton reads. One socket takes both families where servers listen for both.
    pub(super) fn written(&self, address: &Address<'_>) -> String {
        match address {
            Address::EveryV4(port) if self.of_v6.contains(port) => format!(":{port}"),
            Address::EveryV4(port) => format!("0.0.0.0:{port}"),
            Address::EveryV6(port) if self.of_v4.contains(port) => format!(":{port}"),
            Address::EveryV6(port) => format!("[::]:{port}"),
            Address::One(host, port) => format!("{host}:{port}"),
            Address::Local(path) => format!("unix:{path}"),
        }
    }
}

/// The directives that say where a server listens.
pub(super) fn listens(server: &Directive) -> Vec<&Directive> {
    server.block.iter().filter(|directive| directive.name == "listen").collect()
}

/// Whether a `listen` has an option.
pub(super) fn has(listen: &Directive, option: &str) -> bool {
    listen.arguments.iter().skip(1).any(|word| word == option)
}

/// Reads an address.
pub(super) fn address(word: &str) -> Option<Address<'_>> {
    if let Some(path) = word.strip_prefix("unix:") {
        return path.starts_with('/').then_some(Address::Local(path));
    }
    if let Ok(port) = word.parse() {
        return Some(Address::EveryV4(port));
    }
    let (host, port) = match word.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
        _ => (word, 80),
    };
    match host {
        "*" | "0.0.0.0" => Some(Address::EveryV4(port)),
        "[::]" => Some(Address::EveryV6(port)),
        "" => None,
        host => Some(Address::One(host, port)),
    }
}
