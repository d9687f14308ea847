//! A server that has lent the images of a page to a peer: the page has other links, and old links redirect.

use std::fs;
use std::net::SocketAddr;
use std::time::Instant;

use crate::backends;
use crate::common::folder::{Folder, pattern};
use crate::common::port::free_address;
use crate::common::protocol::Protocol;
use crate::common::server::{PATIENCE, Server};
use crate::site;

/// The home of the documents, and the peer that has them.
pub(crate) struct Documents {
    pub(crate) home: Server,
    _peer: Server,
}

/// A document that is away.
pub(crate) const AWAY: &str = "/img/0.png";

/// All documents that may move. Once they are away, the page does not change any more.
const IMAGES: [&str; 2] = [AWAY, "/img/1.png"];

/// Starts both, which speak TLS or not, and makes the home busy until all images are away.
pub(crate) fn start(names_server: bool, is_secure: bool) -> Documents {
    let (at, peer_at) = (free_address(), free_address());
    let url = |address: SocketAddr| match is_secure {
        true => format!("https://localhost:{}", address.port()),
        false => format!("http://{address}"),
    };
    let authorities = if is_secure { "authorities = \"{base}/localhost.pem\", " } else { "" };
    let site = |own, other| {
        let (own_url, other_url) = (url(own), url(other));
        let documents = format!(
            "documents = {{ at = \"{own_url}\", peers = [\"{other_url}\"], key = \"{{base}}/documents.key\", {authorities}{QUICK} }}\n"
        );
        site::site(&own.to_string(), is_secure, &documents)
    };
    let folder = || {
        let folder = Folder::new();
        fs::write(folder.base().join("documents.key"), "0123456789abcdef0123456789abcdef").expect("a key");
        folder.write("410.html", "");
        folder
    };
    // First, so that it answers the home's first questions.
    let peer = site::run(folder(), names_server, &site(peer_at, at));
    let folder = folder();
    let shown = IMAGES.map(|image| format!("<img src=\"{image}\">\n")).concat();
    folder.write("index.html", format!("<!doctype html>\n{shown}{}", backends::page()));
    for (image, seed) in IMAGES.iter().zip(1..) {
        folder.write(image.trim_start_matches('/'), pattern(2_000, seed));
    }
    let home = site::run(folder, names_server, &site(at, peer_at));
    let protocol = if is_secure { Protocol::Https } else { Protocol::Http };
    be_busy(&home.over(protocol));
    Documents { home, _peer: peer }
}

/// Asks until every image redirects, and the page says where they are.
fn be_busy(home: &Server) {
    let deadline = Instant::now() + 4 * PATIENCE;
    let mut client = home.connect();
    loop {
        let here = IMAGES.iter().filter(|image| client.get(image).status == 200).count();
        if here == 0 && client.get("/").text().matches("~migrate").count() == IMAGES.len() {
            return;
        }
        assert!(Instant::now() < deadline, "{here} images are here still:\n{}", home.status());
    }
}

/// Documents move soon, and do not come home.
const QUICK: &str = "statistics_ms = 300, ping_ms = 1000, reply_ms = 1000, peer_ms = 300, recall_ms = 3600000, \
                     scan_ms = 300, imbalance_percent = 110";
