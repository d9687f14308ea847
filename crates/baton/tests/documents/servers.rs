//! Servers that cooperate, each on an address of its own.

use std::net::SocketAddr;

use serde_json::Value;

use crate::common::certificate;
use crate::common::client::{Client, Response};
use crate::common::folder::{Folder, pattern};
use crate::common::port::free_address;
use crate::common::protocol::Protocol;
use crate::common::server::{PATIENCE, Server};

/// The secret of all servers of a test.
pub(crate) const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// A home server with a site, and peers without one.
pub(crate) struct Servers {
    pub(crate) home: Server,
    pub(crate) peers: Vec<Option<Server>>,
    pub(crate) addresses: Vec<SocketAddr>,
    protocol: Protocol,
}

/// Images of the site, which its index shows.
pub(crate) const IMAGES: usize = 6;

/// What documents have besides the usual settings.
#[derive(Clone, Copy, Default)]
pub(crate) struct Settings<'a> {
    pub(crate) home: &'a str,
    pub(crate) peer: &'a str,
    /// Whether clients and servers speak TLS with all of them.
    pub(crate) is_secure: bool,
    /// How servers work, in place of one process of the default architecture.
    pub(crate) server: &'a str,
}

impl Settings<'_> {
    fn protocol(&self) -> Protocol {
        if self.is_secure { Protocol::Https } else { Protocol::Http }
    }
}

impl Servers {
    pub(crate) fn start(peers: usize, settings: Settings<'_>) -> Self {
        let addresses: Vec<_> = (0..=peers).map(|_| free_address()).collect();
        let protocol = settings.protocol();
        let server = |index: usize, folder: Folder, more: &str| {
            run(folder, &configuration(&addresses, protocol, index, settings.server, more))
        };
        // Peers first: the home server's first questions are answered.
        let others = (1..=peers).map(|index| Some(server(index, Folder::new(), settings.peer)));
        let others = others.collect();
        let home = server(0, site(), settings.home).over(protocol);
        Self { home, peers: others, addresses, protocol }
    }

    /// Starts a peer again that has ended.
    pub(crate) fn restart(&mut self, peer: usize, settings: Settings<'_>) {
        let text = configuration(&self.addresses, self.protocol, peer + 1, settings.server, settings.peer);
        self.peers[peer] = Some(run(Folder::new(), &text));
    }

    pub(crate) fn url(&self, index: usize) -> String {
        url(self.protocol, self.addresses[index])
    }

    /// What the home server's process says of its site.
    pub(crate) fn status(&self) -> Value {
        status(&self.home)
    }

    /// Addresses of documents that clients are sent to.
    pub(crate) fn announced(&self) -> Vec<String> {
        let status = self.status();
        let lent = status["lent"].as_array().cloned().unwrap_or_default();
        let announced = lent.into_iter().filter(|one| one["announced"] == true);
        announced.map(|one| one["address"].as_str().expect("an address").to_owned()).collect()
    }

    /// Makes the home server busy until that is so.
    pub(crate) fn busy_until(&self, what: &str, is_so: impl FnMut(&Self) -> bool) {
        let images: Vec<_> = (0..IMAGES).map(|number| format!("/img/{number}.png")).collect();
        self.busy_with_until((&self.home, &images), what, is_so);
    }

    /// Makes a server busy with these paths until that is so.
    pub(crate) fn busy_with_until(
        &self,
        (server, paths): (&Server, &[String]),
        what: &str,
        mut is_so: impl FnMut(&Self) -> bool,
    ) {
        let deadline = std::time::Instant::now() + 4 * PATIENCE;
        while !is_so(self) {
            assert!(
                std::time::Instant::now() < deadline,
                "not within the time: {what}\n{}\n{}",
                self.status(),
                self.home.said()
            );
            let mut client = server.connect();
            for path in paths {
                (0..8).for_each(|_| _ = client.get(path));
            }
        }
    }
}

/// What a server's process says of its site.
pub(crate) fn status(server: &Server) -> Value {
    let status: Value = server.status();
    status["documents"]["sites"][0].clone()
}

/// Gets a URL by one request, without following redirects.
pub(crate) fn get(url: &str, fields: &str) -> Response {
    let (authority, path) = split(url);
    let address = authority.replace("localhost", "127.0.0.1").parse().expect("an address");
    let protocol = if url.starts_with("https:") { Protocol::Https } else { Protocol::Http };
    Client::connect_over(address, protocol).ask_host(authority, "GET", path, fields)
}

/// Authority and path of a URL.
pub(crate) fn split(url: &str) -> (&str, &str) {
    let (_, rest) = url.split_once("://").unwrap_or_else(|| panic!("{url}"));
    rest.split_at(rest.find('/').unwrap_or(rest.len()))
}

/// The address of a server as others know it: by the name in its certificate, if it has one.
fn url(protocol: Protocol, address: SocketAddr) -> String {
    match protocol.is_secure() {
        true => format!("https://localhost:{}", address.port()),
        false => format!("http://{address}"),
    }
}

/// A site: an index that shows all images, a page in a folder, a script that reads one image.
fn site() -> Folder {
    let folder = Folder::new();
    let images: String = (0..IMAGES).map(|number| format!("<img src=\"/img/{number}.png\">\n")).collect();
    folder.write(
        "index.html",
        format!("<!doctype html>\n{images}<a href=sub/page.html>page</a><script src=/s.js></script>"),
    );
    folder
        .write("sub/page.html", "<img src='../img/0.png'><a href=/>up</a><link rel=stylesheet href=/s.css>");
    folder
        .write("s.js", "fetch('/pinned.png')")
        .write("s.css", "@font-face{src:url(/font.woff2)}")
        .write("font.woff2", "f");
    for number in 0..IMAGES {
        folder.write(&format!("img/{number}.png"), pattern(2_000 + number, number as u64));
    }
    folder
}

pub(crate) fn configuration(
    addresses: &[SocketAddr],
    protocol: Protocol,
    index: usize,
    server: &str,
    more: &str,
) -> String {
    let listen = addresses[index];
    let peers = addresses.iter().filter(|other| **other != listen);
    let peers = peers.map(|other| format!("\"{}\"", url(protocol, *other))).collect::<Vec<_>>().join(", ");
    let at = url(protocol, listen);
    let quick = "statistics_ms = 300, ping_ms = 1000, reply_ms = 1000, peer_ms = 300, scan_ms = 300";
    let recall = if more.contains("recall_ms") { "" } else { ", recall_ms = 3600000" };
    let (secure, tls) = match protocol.is_secure() {
        true => {
            (" tls", "tls = { certificate = \"{base}/localhost.pem\", key = \"{base}/localhost.key\" }\n")
        }
        false => ("", ""),
    };
    let server = if server.is_empty() { "processes = 1" } else { server };
    format!(
        "{server}\n[admin]\nlisten = [\"127.0.0.1:0\"]\n[[site]]\nlisten = [\"{listen}{secure}\"]\n{tls}root = \"{{root}}\"\n\
         documents = {{ at = \"{at}\", peers = [{peers}], key = \"{{base}}/documents.key\", {quick}{recall}, imbalance_percent = 110{more} }}"
    )
}

/// Starts a server, with the secret and a certificate in its folder.
pub(crate) fn run(folder: Folder, configuration: &str) -> Server {
    certificate::install(folder.base());
    std::fs::write(folder.base().join("documents.key"), SECRET).expect("a key");
    Server::run(folder, configuration)
}
