//! A site with an application behind it, by every transport, and the servers that serve it.

use std::fs;
use std::sync::{LazyLock, OnceLock};

use crate::common::folder::{Folder, pattern};
use crate::common::server::Server;
use crate::common::{ARCHITECTURES, processes};
use crate::{program, scgi};

/// A text that no client may see.
pub(crate) const SECRET: &str = "nobody should read this";
pub(crate) const ALPHABET: &str = "abcdefghijklmnopqrstuvwxyz";
pub(crate) const BIG_BYTES: usize = 300_000;

/// The transports, which are also the paths below which the application answers by them.
pub(crate) const TRANSPORTS: [&str; 4] = ["unix", "shm", "passfd", "auto"];

/// Threads of the application for each transport, in place of processes.
pub(crate) const THREADS: usize = 4;

/// Threads for uploads, each of which may hold one: as many as the two workers may stream at a time. One worker alone may stream
/// as many as there are tests at a time: on a busy machine it may get nearly all of them.
const UPLOAD_THREADS: usize = 16;

/// The site under an architecture, one server for all tests.
pub(crate) fn server(architecture: &str) -> &'static Server {
    static SERVERS: [OnceLock<Server>; ARCHITECTURES.len()] = [const { OnceLock::new() }; _];
    let index = ARCHITECTURES.iter().position(|word| *word == architecture).expect("an architecture");
    SERVERS[index].get_or_init(|| {
        let folder = Folder::new();
        folder.write("alphabet.txt", ALPHABET);
        let named = folder.base().join("named");
        fs::create_dir(&named).expect("a folder");
        fs::write(named.join("letters.txt"), ALPHABET).expect("a file");
        fs::write(named.join("big.bin"), pattern(BIG_BYTES, 2)).expect("a file");
        fs::write(folder.base().join("secret"), SECRET).expect("a file");
        std::os::unix::fs::symlink("../secret", named.join("out")).expect("a link");
        let mut routes = String::new();
        for transport in TRANSPORTS {
            let socket = folder.base().join(format!("{transport}.sock"));
            program::start(&socket, folder.base(), THREADS);
            program::start(
                &folder.base().join(format!("{transport}-uploads.sock")),
                folder.base(),
                UPLOAD_THREADS,
            );
            program::start(&folder.base().join(format!("{transport}-tags.sock")), folder.base(), THREADS);
            routes.push_str(&ROUTE.replace("{transport}", transport));
        }
        scgi::start(&folder.base().join("scgi.sock"), folder.base());
        routes.push_str(SCGI_ROUTE);
        Server::run(
            folder,
            &SITE
                .replace("{architecture}", architecture)
                .replace("{processes}", &processes(architecture, 2).to_string())
                .replace("{routes}", &routes),
        )
    })
}

/// At most two worker processes (`mp`: more): together they may keep all threads of the application busy, and no
/// more. No request is refused on a busy machine: the tests give up before `queue_ms`.
const SITE: &str = r#"
architecture = "{architecture}"
processes = {processes}
[log]
access = "{base}/access.log"
flush_ms = 10
[[site]]
name = "stage"
{listen}
root = "{root}"
{routes}
[[site.route]]
path = "/inner"
root = "{base}/named"
internal = true
[[site.route]]
path = "/inner-guarded"
root = "{base}/named"
internal = true
deny = ["192.0.2.1"]
"#;

const ROUTE: &str = r#"
[[site.route]]
path = "/{transport}"
root = "{root}"
headers.set = { X-Route = "{transport}", X-Frame-Options = "DENY" }
headers.add = { X-Seen = ["server", "twice"] }
headers.remove = ["X-Powered-By"]
headers.default = { Cache-Control = "no-store", Content-Language = "en" }
[site.route.fastcgi]
to = "unix:{base}/{transport}.sock"
passfd_users = ["{user}"]
transport = "{transport}"
connections_max = 2
queue_ms = 60000
params = { STAGE = "test" }
body_bytes_max = "4 MiB"
region_bytes = "128 KiB"
local_redirects = true
named_files = ["{base}/named"]
internal_files = { "/protected" = "{base}/named" }
[[site.route]]
path = "/{transport}-uploads"
[site.route.fastcgi]
to = "unix:{base}/{transport}-uploads.sock"
passfd_users = ["{user}"]
transport = "{transport}"
connections_max = 8
streamed_bodies_max = 8
[[site.route]]
path = "/{transport}-tags"
etag = "digest"
headers.set = { X-Route = "{transport}" }
[site.route.fastcgi]
to = "unix:{base}/{transport}-tags.sock"
passfd_users = ["{user}"]
transport = "{transport}"
connections_max = 2
queue_ms = 60000
region_bytes = "128 KiB"
"#;

const SCGI_ROUTE: &str = r#"
[[site.route]]
path = "/scgi-uploads"
scgi = { to = "unix:{base}/scgi.sock", streamed_bodies_max = 8 }
"#;

/// The requested paths, one for each transport.
pub(crate) static PATHS: LazyLock<Vec<String>> =
    LazyLock::new(|| TRANSPORTS.iter().map(|transport| format!("/{transport}")).collect());
