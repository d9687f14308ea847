//! Files, and an application, which answers as in the suite of applications.

use crate::common::folder::{Folder, pattern};
use crate::common::processes;
use crate::common::server::Server;
use crate::common::watched::Watched;
use crate::program;

/// A server with one worker (`mp`: more), with `index.html`, `small.txt` and `large.bin`, and with an application of so
/// many processes below `/app`. `settings` are lines of the section `[limits]`.
pub(crate) fn start(architecture: &str, application: usize, limits: &str) -> Watched {
    let folder = Folder::new();
    folder.write("index.html", "<!doctype html><title>Home</title><p>Enough text for several small frames.");
    folder.write("small.txt", SMALL).write("large.bin", large());
    program::start(&folder.base().join("app.sock"), folder.base(), application);
    let log = folder.base().join("access.log");
    let configuration = SITE
        .replace("{architecture}", architecture)
        .replace("{processes}", &processes(architecture, 1).to_string())
        .replace("{limits}", limits);
    Watched::of(Server::run(folder, &configuration), log)
}

/// The bytes of `large.bin`.
pub(crate) fn large() -> &'static [u8] {
    pattern(LARGE_BYTES, 1)
}

pub(crate) const SMALL: &str = "small";

/// Several windows of any client.
const LARGE_BYTES: usize = 3 << 20;

const SITE: &str = r#"
architecture = "{architecture}"
processes = {processes}
[limits]
{limits}
[admin]
listen = ["127.0.0.1:0"]
[log]
access = "{base}/access.log"
format = "json"
flush_ms = 20
[[site]]
listen = ["127.0.0.1:0"]
root = "{root}"
[[site.route]]
path = "/app"
[site.route.fastcgi]
to = "unix:{base}/app.sock"
queue_ms = 60000
streamed_bodies_max = 1
"#;
