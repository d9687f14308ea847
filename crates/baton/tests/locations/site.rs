//! The sites of these tests: one server for each architecture.

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

/// What no client may read.
pub(crate) const SECRET: &str = "a secret";

fn start(architecture: &str) -> Server {
    let folder = Folder::new();
    for name in [
        "index.html",
        "a.txt",
        "a.css",
        "img/a.png",
        "img/b/c.png",
        "upload/x.jpg",
        "static/a.txt",
        "sub/a.txt",
        "é.txt",
    ] {
        folder.write(name, format!("{name}\n"));
    }
    for name in ["a.php", "upload/evil.php", "conf/db.inc", "conf/DB.INC", "static/run.php", "private/a.txt"]
    {
        folder.write(name, SECRET);
    }
    let mut configuration = format!("architecture = \"{architecture}\"\nprocesses = 1\n");
    for name in [
        "spa/index.html",
        "spa/about.html",
        "spa/docs/index.html",
        "spa/empty/x/y.txt",
        "spa/assets/app.js",
        "front/style.css",
        "front/img/a.png",
        "front/upload/x.jpg",
    ] {
        folder.write(&format!("../{name}"), format!("{name}\n"));
    }
    for name in ["front/index.php", "front/sub/index.php", "front/run.php", "front/.env", "spa/.env"] {
        folder.write(&format!("../{name}"), SECRET);
    }
    let origin = Origin::start(echo).address().to_string();
    configuration.push_str(&include_str!("site.toml").replace("{origin}", &origin));
    configuration.push_str(&crate::asked::sites(&folder));
    Server::run(folder, &configuration)
}

/// Answers with what it was asked: method, target and body.
fn echo(peer: &mut Peer) {
    while let Some(seen) = peer.request() {
        let asked = seen.line().rsplit_once(' ').map_or("", |(asked, _)| asked);
        let answer = format!("{asked}\n{}", String::from_utf8_lossy(&seen.body));
        peer.answer("", answer);
    }
}
