//! A site whose routes lead to origins, and the servers that serve it.

use std::fs;
use std::sync::{LazyLock, OnceLock};

use memchr::memmem;
use serde_json::Value;

use crate::common::folder::Folder;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::common::{ARCHITECTURES, processes};
use crate::manners;
use crate::origin::Origin;

/// A server, and the origin behind it.
pub(crate) struct Site {
    pub(crate) server: Server,
}

/// The origin of all servers.
pub(crate) static ORIGIN: LazyLock<Origin> = LazyLock::new(|| Origin::start(manners::serve));

impl Site {
    /// The same for clients of a protocol.
    pub(crate) fn over(&self, protocol: Protocol) -> Self {
        Self { server: self.server.over(protocol) }
    }

    /// The one line of a request in the access log.
    #[track_caller]
    pub(crate) fn line_of(&self, path: &str) -> Value {
        logged(&self.server, path)
    }
}

/// The one line in a server's access log of a request for a path.
#[track_caller]
pub(crate) fn logged(server: &Server, path: &str) -> Value {
    let file = server.folder().base().join("access.log");
    let mark = format!(" {path} ");
    let mut lines = Vec::new();
    wait_until(&format!("the line of {path} in the log"), || {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        lines =
            memmem::find_iter(whole.as_bytes(), &mark).map(|at| line_around(whole, at).to_owned()).collect();
        !lines.is_empty()
    });
    let [line] = &lines[..] else { panic!("{path} is logged twice") };
    serde_json::from_str(line).expect("JSON")
}

/// The line of a text in which this byte is.
fn line_around(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let len = text[at..].find('\n').map_or(text.len() - start, |len| at + len - start);
    &text[start..start + len]
}

/// A path below which the origin answers, for one test and one protocol: the query tells them apart.
pub(crate) fn target(site: &Site, manner: &str, test: &str) -> String {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("/o/{manner}?{test}-{:?}-{number}", site.server.protocol())
}

/// The site under an architecture, one server for all tests.
pub(crate) fn site(architecture: &str) -> &'static Site {
    static SITES: [OnceLock<Site>; ARCHITECTURES.len()] = [const { OnceLock::new() }; _];
    let index = ARCHITECTURES.iter().position(|word| *word == architecture).expect("an architecture");
    SITES[index].get_or_init(|| {
        let folder = Folder::new();
        folder.write("file.txt", "a file");
        let configuration = SITE
            .replace("{architecture}", architecture)
            .replace("{processes}", &processes(architecture, 2).to_string())
            .replace("{origin}", &ORIGIN.address().to_string());
        Site { server: Server::run(folder, &configuration) }
    })
}

/// Below `/o` paths lose their prefix, below `/same` they do not.
const SITE: &str = r#"
architecture = "{architecture}"
processes = {processes}
[log]
access = "{base}/access.log"
format = "json"
flush_ms = 10
[[site]]
name = "front"
{listen}
root = "{root}"
[[site.route]]
path = "/o"
proxy = { to = "http://{origin}/", rewrite_cookie_paths = true, body_bytes_max = "16 MiB" }
headers = { set = { X-Route = "o" }, remove = ["X-Hidden"] }
[[site.route]]
path = "/same"
proxy = "http://{origin}"
[[site.route]]
path = "/base"
proxy = { to = "http://{origin}/inner/", host = "origin", request_headers = { set = { X-Key = "1" }, remove = ["Cookie"] }, trusted = ["127.0.0.0/8"] }
[[site.route]]
path = "/hasty"
proxy = { to = "http://{origin}/", head_ms = 300, gap_ms = 300 }
"#;
