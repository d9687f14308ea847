//! The site of these tests: one server for each architecture.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use crate::common::folder::Folder;
use crate::common::server::Server;
use crate::origin::{Origin, Peer};

/// The server that runs under an architecture.
pub(crate) fn server(architecture: &str) -> Server {
    static SERVERS: LazyLock<Mutex<HashMap<String, Arc<Server>>>> = LazyLock::new(Mutex::default);
    let mut servers = SERVERS.lock().expect("the servers");
    let server = servers.entry(architecture.to_owned()).or_insert_with(|| Arc::new(start(architecture)));
    server.over(server.protocol())
}

fn start(architecture: &str) -> Server {
    let folder = Folder::new();
    for name in ["a.txt", "index.html", "beta/a.txt"] {
        folder.write(name, format!("{name}\n"));
    }
    folder.write("404.html", "the site's 404");
    folder.write("route-404.html", "the route's 404");
    folder.write("503.html", "the route's 503");
    folder.write("../crawlers.txt", "# Crawlers\nGPTBot\n\n  ccbot  \n~^Evil/\\d\n");
    let origins = [Origin::start(answer), Origin::start(answer)];
    let mut configuration = format!("architecture = \"{architecture}\"\nprocesses = 1\n");
    configuration.push_str(include_str!("site.toml"));
    for (name, origin) in ["{origin}", "{second}"].into_iter().zip(&origins) {
        configuration = configuration.replace(name, &origin.address().to_string());
    }
    Server::run(folder, &configuration)
}

/// Answers with the status that the path names, and with the head that it was asked with. If the path says so, that is the beginning
/// of a body that never ends.
fn answer(peer: &mut Peer) {
    while let Some(seen) = peer.request() {
        let status = seen.path().rsplit('/').next().and_then(|last| last.split('?').next());
        let status = status.and_then(|status| status.parse().ok()).unwrap_or(200_u16);
        let body = format!("of the origin\n{}", seen.head);
        let missing = if seen.path().contains("/endless/") { 1 << 30 } else { 0 };
        peer.send(format!(
            "HTTP/1.1 {status} Word\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nX-Cached: 1\r\n\
             Cache-Control: max-age=60\r\n\r\n{body}",
            body.len() + missing
        ));
    }
}
