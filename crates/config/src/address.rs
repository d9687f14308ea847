//! Addresses to listen on, as users write them.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use baton_engine::listen::ListenAddress;

use super::error::Complaint;
use super::kind::{Kind, ListOf, Reading};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::shown::Shown;
use super::text::Text;

/// An address of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Where it listens.
    pub address: ListenAddress,
    /// Whether its connections speak TLS.
    pub tls: bool,
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.address, if self.tls { TLS } else { "" })
    }
}

/// What ends an address that speaks TLS.
const TLS: &str = " tls";

/// One or several addresses: a string or an array of strings.
pub(crate) struct Addresses;

/// One or several addresses, with TLS or without.
pub(crate) struct SiteAddresses;

/// What an address may look like.
const FORMS: &str = "\"127.0.0.1:8080\", \"[::1]:8080\", \"localhost:8080\", \"8080\" (this host only), \":8080\" (all \
                     interfaces) or \"unix:/path\"";

impl Kind for Addresses {
    type Value = Vec<ListenAddress>;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        format!("an address or an array of addresses: {FORMS}")
    }

    fn schema(&self) -> Schema {
        Schema::one_or_several(Address.schema())
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Vec<ListenAddress>> {
        let listen = SiteAddresses.read(node, reading)?;
        if listen.iter().any(|listen| listen.tls) {
            reading.refuse(node.span(), "has an address with TLS", "only sites speak TLS");
            return None;
        }
        Some(listen.into_iter().map(|listen| listen.address).collect())
    }

    fn write(&self, value: &Vec<ListenAddress>) -> toml::Value {
        toml::Value::Array(value.iter().map(|address| address.to_string().into()).collect())
    }
}

impl Kind for SiteAddresses {
    type Value = Vec<Listen>;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        format!("an address or an array of addresses: {FORMS}; with TLS: \":443 tls\"")
    }

    fn schema(&self) -> Schema {
        Schema::one_or_several(Address.schema())
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Vec<Listen>> {
        let lists = match node.get_ref() {
            Value::Array(_) => ListOf(Address).read(node, reading)?,
            _ => vec![Address.read(node, reading)?],
        };
        let listen: Vec<_> = lists.into_iter().flatten().collect();
        if listen.is_empty() {
            reading.refuse(node.span(), "is empty", "expected at least one address");
            return None;
        }
        Some(listen)
    }

    fn write(&self, value: &Vec<Listen>) -> toml::Value {
        toml::Value::Array(value.iter().map(|listen| listen.to_string().into()).collect())
    }
}

/// One address as written, which may stand for several sockets.
struct Address;

impl Kind for Address {
    type Value = Vec<Listen>;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        format!("an address: {FORMS}")
    }

    fn schema(&self) -> Schema {
        Schema::either([Schema::TEXT, Schema::Integer(0, 65_535)])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Vec<Listen>> {
        // A bare port is an address too, quoted or not.
        let text = match node.get_ref() {
            Value::Integer(port) => port.to_string(),
            Value::String(_) => Text.read(node, reading)?,
            _ => return reading.mismatch(node, &self.accepted()),
        };
        let (text, tls) = match text.strip_suffix(TLS) {
            Some(text) => (text.trim_end(), true),
            None => (&*text, false),
        };
        match parse(text, reading.base_at(&node.span())) {
            Ok(addresses) => Some(addresses.into_iter().map(|address| Listen { address, tls }).collect()),
            Err(reason) => {
                let complaint = reading.complaint("has an address that cannot be listened on");
                let complaint = complaint.at(node.span(), reason).help(format!("accepted: {FORMS}"));
                // As nginx has it.
                let hint = text.strip_suffix(" ssl").map(|text| format!("did you mean `{text}{TLS}`?"));
                reading.complain(hint.into_iter().fold(complaint, Complaint::help));
                None
            }
        }
    }

    fn write(&self, value: &Vec<Listen>) -> toml::Value {
        SiteAddresses.write(value)
    }
}

/// Bytes that the kernel has room for in a Unix socket's path (`sun_path`, with the NUL that ends it).
const SOCKET_PATH_BYTES_MAX: usize = 107;

fn parse(text: &str, base: &Path) -> Result<Vec<ListenAddress>, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        let path = base.join(path);
        return match path.as_os_str().len() {
            _ if path == base => Err("the path of the socket is missing".into()),
            length if length > SOCKET_PATH_BYTES_MAX => {
                Err(format!("the path has {length} bytes, a Unix socket's at most {SOCKET_PATH_BYTES_MAX}"))
            }
            _ => Ok(vec![ListenAddress::Unix(path)]),
        };
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(vec![ListenAddress::Tcp(address)]);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or(("localhost", text));
    let port: u16 = port.parse().map_err(|_| match text.parse::<std::net::IpAddr>() {
        Ok(_) => "the port is missing".to_owned(),
        Err(_) => format!("`{port}` is not a port: expected 0 to 65535"),
    })?;
    let v4 = |ip| ListenAddress::Tcp(SocketAddr::from((ip, port)));
    match host {
        "localhost" => Ok(vec![v4(Ipv4Addr::LOCALHOST)]),
        "" | "*" => {
            let mut addresses = vec![v4(Ipv4Addr::UNSPECIFIED)];
            // Sockets of the two families are kept apart (IPV6_V6ONLY); a kernel without IPv6 has only the one. With
            // port 0 the kernel would choose two different ports.
            if port != 0 && Path::new("/proc/net/if_inet6").exists() {
                addresses.push(ListenAddress::Tcp(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))));
            }
            Ok(addresses)
        }
        _ => Err(format!("`{host}` is not an IP address; names of hosts belong in `hosts`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<Vec<String>, String> {
        parse(text, Path::new("/base")).map(|addresses| addresses.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn every_accepted_form() {
        assert_eq!(shown("8080").unwrap(), ["127.0.0.1:8080"]);
        assert_eq!(shown("localhost:1").unwrap(), ["127.0.0.1:1"]);
        assert_eq!(shown("10.0.0.1:65535").unwrap(), ["10.0.0.1:65535"]);
        assert_eq!(shown("[::1]:80").unwrap(), ["[::1]:80"]);
        assert_eq!(shown(":8080").unwrap()[0], "0.0.0.0:8080");
        assert_eq!(shown("*:0").unwrap(), ["0.0.0.0:0"]);
        assert_eq!(shown("unix:run/x.sock").unwrap(), ["unix:/base/run/x.sock"]);
        assert_eq!(shown("unix:/run/x.sock").unwrap(), ["unix:/run/x.sock"]);
    }

    #[test]
    fn refusals_say_what_is_missing() {
        assert_eq!(shown("10.0.0.1").unwrap_err(), "the port is missing");
        assert!(shown("10.0.0.1:65536").unwrap_err().contains("not a port"));
        assert!(shown("example.org:80").unwrap_err().contains("belong in `hosts`"));
        assert!(shown("unix:").unwrap_err().contains("missing"));
        assert!(shown(&format!("unix:/{}", "x".repeat(120))).unwrap_err().contains("at most 107"));
    }
}
