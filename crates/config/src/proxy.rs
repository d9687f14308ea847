//! `proxy = …` of a route: the origin server that answers, and how it is talked to.

use std::ops::Range;
use std::path::PathBuf;

use baton_dispatch::PolicyName;
use baton_http::FieldRules;
use baton_http::origin::HostRule;

use super::client_addresses::{ClientAddress, ClientAddressKind};
use super::duration::Milliseconds;
use super::error::Complaint;
use super::fields::RequestFields;
use super::kind::{Bytes, Flag, Integer, Kind, ListOf, Or, Reading};
use super::origin_url::OriginUrl;
use super::origins::{Eject, Health, Origin, Origins, Url};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::setting::{Inline, settings};
use super::shown::Shown;
use super::system::Folder;
use super::text::{FilePath, Text, TextOf, Wrong};
use super::words::{Word, words};

words! {
    /// The PROXY protocol.
    SendProxyProtocol {
        /// not spoken
        Off = "off",
        /// version 1, as text
        V1 = "v1",
        /// version 2, as bytes
        V2 = "v2",
    }
}

settings! {
    /// An origin: a server that speaks HTTP/1.1 or HTTP/1.0. Where only its URL matters, `proxy = "http://127.0.0.1:3000"`
    /// says the same as `proxy = { to = "http://127.0.0.1:3000" }`.
    Proxy in "site.route.proxy" needs ["to"] {
        /// Its URL, or an array of URLs: `["http://a", { to = "http://b", weight = 2 }]`. Without a path, the origin is asked for the paths that clients ask for. With one, and be it `/`, that takes
        /// the place of the path of the route: below `/app`, `http://127.0.0.1:3000/` is asked for `/x` where the client
        /// asks for `/app/x`. A host name is looked up at the start, and again when the answer of DNS is too old.
        to: Vec<Origin> = vec![Origin::default()], Origins;
        /// How requests are distributed among several origins.
        policy: PolicyName = PolicyName::Wrr, Word::<PolicyName>::new();
        /// When one of several origins gets no requests because it fails. `off`: never.
        eject: Option<Eject> = Some(Eject::default()), Or("off", Inline::<Eject>::new());
        /// Checks of several origins: `{ path = "/health" }`.
        health: Option<Health> = None, Or("off", Inline::<Health>::new());
        /// Milliseconds in which an origin that returns comes to its full weight. 0: it has that at once.
        slow_start_ms: u64 = 0, Milliseconds(0, DAY_MS);
        /// Which `Host` the origin reads: `client`, the one that the client asked for; `origin`, the one of the URL; or the
        /// name of a host.
        host: HostRule = HostRule::Client, Host;
        /// Rules for the fields of requests, as `headers` has them for those of responses:
        /// `{ set = { X-Key = "1", X-Real-IP = "$client_ip" }, remove = ["Cookie"] }`.
        request_headers: FieldRules = FieldRules::default(), RequestFields;
        /// Proxies in front of this server whose own `Forwarded`, `X-Forwarded-For`, `-Host` and `-Proto` are passed on:
        /// addresses such as `10.0.0.0/8`, or `unix:` for clients of Unix sockets. From all other clients these fields are
        /// replaced.
        trusted: Vec<ClientAddress> = Vec::new(), ListOf(ClientAddressKind);
        /// Whether `Location`, `Content-Location` and `Refresh` that lead to the origin lead to this route instead.
        rewrite_locations: bool = true, Flag;
        /// Whether the same is done to the `Path` of cookies.
        rewrite_cookie_paths: bool = false, Flag;
        /// Connections to the origin at a time, for each loop of a worker. Beyond it, requests wait. Tunnels have a bound of
        /// their own.
        connections_max: u64 = 1_024, Integer(1, 32_768);
        /// Tunnels (WebSocket) to the origin at a time, for each loop of a worker. Beyond it: another origin, or 503.
        tunnels_max: u64 = 8_192, Integer(0, 32_768);
        /// Whether connections are kept between requests.
        keep_connections: bool = true, Flag;
        /// Connections that are kept without a request, for each loop of a worker; 0: none. More of them are kept for a tenth of
        /// a second: a busy server needs them again by then.
        idle_connections_max: u64 = 32, Integer(0, 32_768);
        /// Milliseconds that a connection is kept without a request. Less than the origin keeps it, or a request can meet its
        /// end; if the origin says how long it does (`Keep-Alive: timeout=5`), less than that.
        idle_ms: u64 = 4_000, Milliseconds(1, DAY_MS);
        /// Bytes of a response's body, of known length, that are still to come, from which they go through a pipe (`splice`) from a
        /// TCP connection in clear to a client of HTTP/1 in clear, instead of through the server's memory; 0: never. The rest for
        /// a client that takes less than 256 KiB a second is read and waits in a file.
        splice_bytes_min: u64 = 128 << 10, Bytes(0, 1 << 30);
        /// Requests after which a connection is closed.
        requests_per_connection_max: Option<u64> = None, Or("off", Integer(1, 1_000_000_000));
        /// Requests that wait for a connection, for each loop of a worker. Beyond it: 503.
        queue_max: u64 = 1_000, Integer(0, 10_000_000);
        /// Milliseconds that a request may wait for a connection. Then: 503.
        queue_ms: u64 = 10_000, Milliseconds(1, DAY_MS);
        /// Milliseconds that connecting may take, with TLS. Then the next address of the host, or 504.
        connect_ms: u64 = 5_000, Milliseconds(1, DAY_MS);
        /// Milliseconds from the last part of the request to the head of the response. Then: 504.
        head_ms: u64 = 60_000, Milliseconds(1, DAY_MS);
        /// Milliseconds between two parts of a response. Then the client's connection ends.
        gap_ms: u64 = 60_000, Milliseconds(1, DAY_MS);
        /// Milliseconds without a byte in either direction after which a tunnel (WebSocket) ends.
        tunnel_idle_ms: u64 = 3_600_000, Milliseconds(1, 7 * DAY_MS);
        /// Bytes of a request's body. Beyond it: 413. Bodies are passed on as they arrive. `auto`: what the route or its site
        /// says, or else 1 GiB.
        body_bytes_max: Option<u64> = None, Or("auto", Bytes(0, 1 << 50));
        /// Bytes of a response that wait in memory for a slow client; the rest goes to a file.
        response_memory_bytes: u64 = 256 << 10, Bytes(4 << 10, 1 << 30);
        /// Bytes of a response that wait in a file for a slow client, so that the origin need not. Beyond them, or if there is no
        /// room on the disk, the origin waits. 0: none. Tunnels and fetches of
        /// the shared cache use no files.
        response_file_bytes_max: u64 = 1 << 30, Bytes(0, 1 << 50);
        /// Folder for these files, which have no names. `auto`: as for applications.
        temporary_folder: Option<PathBuf> = None, Or("auto", Folder);
        /// TLS with an `https` origin.
        tls: OriginTls = OriginTls::default(), Inline::<OriginTls>::new();
        /// Whether each connection begins with the PROXY protocol, which says whose it is. It is then used for one client only.
        send_proxy_protocol: SendProxyProtocol = SendProxyProtocol::Off, Word::<SendProxyProtocol>::new();
    }
}

settings! {
    /// TLS with an origin.
    OriginTls in "site.route.proxy.tls" {
        /// File with the certificates of authorities (PEM) that are trusted with the origin's. `system`: those that the system
        /// trusts.
        ca: Option<PathBuf> = None, Or("system", FilePath);
        /// The name that the certificate must have, and that is asked for (SNI). `auto`: the host of the URL.
        name: Option<String> = None, Or("auto", Text);
        /// Whether the certificate is verified. Without it, a machine in between can read and change everything.
        verify: bool = true, Flag;
        /// Certificate (PEM, with its chain) to show to an origin that asks for one.
        certificate: Option<PathBuf> = None, Or("off", FilePath);
        /// Its key (PEM). `auto`: it is in the same file.
        key: Option<PathBuf> = None, Or("auto", FilePath);
    }
}

impl Proxy {
    /// The URL of the first origin, whose path is that of all.
    pub(crate) fn first(&self) -> &OriginUrl {
        // Neither a reader nor a default leaves the list empty.
        &self.to[0].to
    }
}

/// A URL, or a table with one.
pub(crate) struct ProxyKind;

impl Kind for ProxyKind {
    type Value = Proxy;

    const SHOWN: Shown = Inline::<Proxy>::SHOWN.or_value();

    fn accepted(&self) -> String {
        format!("{}, or {}", Url.accepted(), Inline::<Proxy>::new().accepted())
    }

    fn schema(&self) -> Schema {
        Schema::either([Url.schema(), Inline::<Proxy>::new().schema()])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Proxy> {
        let Value::Table(entries) = node.get_ref() else {
            let to = Url.read(node, reading)?;
            return Some(Proxy { to: vec![Origin { to, ..Origin::default() }], ..Proxy::default() });
        };
        let proxy = Inline::<Proxy>::new().read(node, reading)?;
        let place = |key: &str| entries.get(key).map_or_else(|| node.span(), Node::span);
        if proxy.to.len() > 1 && proxy.host == HostRule::Origin {
            let complaint = Complaint::new("`host = \"origin\"` leaves open which of the origins is meant");
            let complaint = complaint.at(place("host"), "there are several");
            reading.complain(complaint.help("give the name of a host, or leave the client's"));
            return None;
        }
        if !check_ejection(&proxy, place("eject"), reading) {
            return None;
        }
        if proxy.health.is_some() && proxy.to.len() == 1 {
            let complaint = Complaint::new("`health` without another origin");
            reading.complain(
                complaint.at(place("health"), "there is only one origin, which is asked in any case"),
            );
            return None;
        }
        Some(proxy)
    }

    fn write(&self, value: &Proxy) -> toml::Value {
        Inline::<Proxy>::new().write(value)
    }
}

/// Complains of times of ejection that exclude each other.
pub(crate) fn check_ejection(proxy: &Proxy, place: Range<usize>, reading: &mut Reading<'_>) -> bool {
    let is_fine = proxy.eject.as_ref().is_none_or(|eject| eject.out_ms <= eject.out_ms_max);
    if !is_fine {
        let complaint = Complaint::new("`out_ms_max` is less than `out_ms`");
        reading.complain(complaint.at(place, "no time is within these bounds"));
    }
    is_fine
}

/// Which Host an origin reads.
struct Host;

impl Kind for Host {
    type Value = HostRule;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "\"client\", \"origin\" or the name of a host, perhaps with a port".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<HostRule> {
        Some(match &*HOST_NAME.read(node, reading)? {
            "client" => HostRule::Client,
            "origin" => HostRule::Origin,
            host => HostRule::Fixed(host.to_owned()),
        })
    }

    fn write(&self, value: &HostRule) -> toml::Value {
        match value {
            HostRule::Client => "client".into(),
            HostRule::Origin => "origin".into(),
            HostRule::Fixed(host) => host.as_str().into(),
        }
    }
}

/// A host, perhaps with a port.
const HOST_NAME: TextOf = TextOf {
    accepted: "the name of a host",
    check: |host| {
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
        match host.bytes().all(is_fine) {
            true => Ok(host),
            false => Err(Wrong::new("is not a host", "expected a name, perhaps with a port")),
        }
    },
};

const DAY_MS: u64 = 86_400_000;
