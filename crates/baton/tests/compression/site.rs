//! A site with files, programs and an origin, all of which may be compressed.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::common::agent::Agent;
use crate::common::client::Response;
use crate::common::folder::{Folder, install_program};
use crate::common::processes;
use crate::common::server::{Server, wait_until};
use crate::origins;

/// A text that compresses about three to one.
pub(crate) fn text(len: usize) -> Vec<u8> {
    static LONGEST: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let mut random = fastrand::Rng::with_seed(7);
        let words = ["baton ", "passes ", "files ", "and ", "sockets ", "<p>", "</p>\n", "compress ", "é "];
        let mut text = Vec::new();
        while text.len() < TEXT_BYTES_MAX {
            text.extend_from_slice(words[random.usize(..words.len())].as_bytes());
        }
        text
    });
    LONGEST[..len].to_vec()
}

const TEXT_BYTES_MAX: usize = 3 << 20;
pub(crate) const PAGE_BYTES: usize = 100_000;
pub(crate) const CODINGS: [&str; 3] = ["gzip", "br", "zstd"];

/// One server for each architecture.
static SERVERS: LazyLock<Mutex<HashMap<String, &'static Server>>> = LazyLock::new(Mutex::default);

pub(crate) fn server(architecture: &str) -> &'static Server {
    let mut servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    servers.entry(architecture.to_owned()).or_insert_with(|| Box::leak(Box::new(started(architecture))))
}

fn started(architecture: &str) -> Server {
    let processes = processes(architecture, 1);
    run(&format!("architecture = \"{architecture}\"\nprocesses = {processes}\n{}", include_str!("site.toml")))
}

/// A server of this folder with a configuration.
pub(crate) fn run(configuration: &str) -> Server {
    let folder = Folder::new();
    folder.write("page.html", text(PAGE_BYTES));
    folder.write("large.txt", text(600_000));
    folder.write("huge.txt", text((2 << 20) + 1));
    folder.write("small.txt", text(500));
    folder.write("picture.png", text(5_000));
    folder.write("noise.txt", noise(20_000));
    folder.write("final.log", text(5_000));
    folder.write("copied.css", text(5_000));
    folder.write("copied.css.gz", "no real copy, but the server's to send");
    folder.write("run/about.txt", "");
    let program = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nseq 1 20000\n";
    install_program(&folder.path("run/count.cgi"), program);
    let origin = origins::address().to_string();
    Server::run(folder, &configuration.replace("{origin}", &origin))
}

pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(8);
    std::iter::repeat_with(|| random.u8(..)).take(len).collect()
}

/// Asks with `Accept-Encoding` until the response is coded: a file goes out as it is while it is coded for another client.
pub(crate) fn coded(agent: &mut Agent, method: &str, path: &str, accept: &str) -> Response {
    let mut response = None;
    wait_until("the file is coded", || {
        let asked = agent.ask(method, path, &format!("Accept-Encoding: {accept}\r\n"));
        assert_eq!(asked.status, 200, "{path}");
        let is_coded = asked.field("content-encoding").is_some();
        response = Some(asked);
        is_coded
    });
    response.expect("a response")
}
