//! The site that all tests visit, and the servers that serve it.

use std::collections::HashMap;
use std::fs;
use std::sync::{LazyLock, Mutex, OnceLock};

use crate::common::ARCHITECTURES;
use crate::common::folder::{Folder, pattern};
use crate::common::server::Server;

/// The alphabet: a file of known bytes, modified at [`ALPHABET_DATE`].
pub(crate) const ALPHABET: &str = "abcdefghijklmnopqrstuvwxyz";
/// The example of RFC 9110.
pub(crate) const ALPHABET_DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const ALPHABET_SECONDS: u64 = 784_111_777;

/// A text that no client may see.
pub(crate) const SECRET: &str = "nobody should read this";

/// Files with distinct patterns, and their sizes: they leave the server by different paths.
pub(crate) const PATTERNS: [(&str, usize); 4] =
    [("1k.bin", 1 << 10), ("16k.bin", 16 << 10), ("100k.bin", 100 << 10), ("1m.bin", 1 << 20)];

/// The content of one of [`PATTERNS`].
pub(crate) fn pattern_of(name: &str) -> &'static [u8] {
    let known = PATTERNS.iter().find(|(known, _)| *known == name);
    let (_, size) = known.unwrap_or_else(|| panic!("{name} has no pattern"));
    pattern(*size, *size as u64)
}

/// The museum under an architecture, one server for all tests.
pub(crate) fn server(architecture: &str) -> &'static Server {
    static SERVERS: [OnceLock<Server>; ARCHITECTURES.len()] = [const { OnceLock::new() }; _];
    let index = ARCHITECTURES.iter().position(|word| *word == architecture).expect("an architecture");
    SERVERS[index].get_or_init(|| open(architecture, ""))
}

/// A server of the museum with further sections of settings, shared by tests with the same.
pub(crate) fn server_with(architecture: &str, sections: &'static str) -> &'static Server {
    static SERVERS: LazyLock<Mutex<HashMap<(String, &str), &'static Server>>> = LazyLock::new(Mutex::default);
    let mut servers = SERVERS.lock().expect("the servers");
    // Like a static, it lives as long as the tests.
    servers
        .entry((architecture.to_owned(), sections))
        .or_insert_with(|| Box::leak(Box::new(open(architecture, sections))))
}

/// The architecture of one of these servers, by its own words.
pub(crate) fn architecture_of(server: &Server) -> String {
    let said = server.said();
    let (before, _) = said.split_once(" architecture,").expect("its architecture");
    before.rsplit('(').next().expect("a word").to_owned()
}

/// The folder of the museum. It is the same for all servers, and so are inodes and dates, hence entity tags.
pub(crate) fn folder() -> &'static Folder {
    static FOLDER: LazyLock<Folder> = LazyLock::new(furnish);
    &FOLDER
}

fn open(architecture: &str, sections: &str) -> Server {
    let base = folder().base().to_str().expect("a path in UTF-8");
    let sites = SITES.replace("{museum}", base);
    // Revalidated often, so that no test waits long for a change.
    let settings =
        format!("architecture = \"{architecture}\"\n[cache]\nrevalidate_ms = 50\n{sections}\n{sites}");
    Server::run(Folder::new(), &settings)
}

/// Virtual hosts, each for one question.
const SITES: &str = r#"
[[site]]
name = "museum"
{listen}
root = "{museum}/root"
cache_control = [{ match = "*.css", value = "max-age=86400" }, { match = "/names/**", value = "no-store" }]
headers = { X-Frame-Options = "DENY", Link = ["</a>; rel=preload", "</b>; rel=preload"] }

[[site]]
name = "listed"
hosts = ["listed.example"]
{listen}
root = "{museum}/root"
browse = true
headers = { X-Listed = "yes" }

[[site]]
name = "application"
hosts = ["application.example"]
{listen}
root = "{museum}/root"
fallback = "folder/page.html"

[[site]]
name = "open"
hosts = ["open.example"]
{listen}
root = "{museum}/root"
hidden = true
symlinks = "anywhere"
precompressed = []
index = ["none.html", "page.html"]

[[site]]
name = "closed"
hosts = ["closed.example"]
{listen}
root = "{museum}/root"
symlinks = "refused"

[[site]]
name = "wild"
hosts = ["*.wild.example"]
{listen}
root = "{museum}/wild"

[[site]]
name = "exact"
hosts = ["exact.wild.example", "[::1]"]
{listen}
root = "{museum}/exact"

[[site]]
name = "scripts"
hosts = ["scripts.example"]
{listen}
root = "{museum}/scripts"
browse = true
index = ["index.php", "index.html"]

[[site.route]]
path = "/"
scgi = { to = "unix:/nonexistent/scgi.sock", scripts = [".php", ".cgi"] }

[[site.route]]
path = "/sub"

[[site.route]]
path = "/own"
root = "{museum}/scripts/sub"
fallback = "b.php"

[[site.route]]
path = "/raw"
script_sources = true
index = ["none.html"]

[[site]]
name = "no-scripts"
hosts = ["no-scripts.example"]
{listen}
root = "{museum}/scripts"

[[site]]
name = "routes"
hosts = ["routes.example"]
{listen}
root = "{museum}/root"
error_pages = { 403 = "{museum}/403.html", 404 = "{museum}/404.html", 405 = "{museum}/405.txt", 416 = "{museum}/416.html" }
headers = { X-Site = "routes" }

[[site.route]]
path = "/old"
redirect = { to = "https://new.example/moved$uri", status = 308 }

[[site.route]]
path = "/moved"
redirect = { to = "https://new.example/docs$rest", status = 301 }

[[site.route]]
path = "/here"
redirect = { to = "/small.txt" }
headers = { X-Route = "here", location = "/never" }

[[site.route]]
path = "/taken"
redirect = { to = "/small.txt", status = 307 }

[[site.route]]
path = "/seen"
redirect = { to = "/small.txt", status = 303 }

[[site.route]]
path = "/only"
redirect = { to = "/small.txt", status = 308 }
methods = ["POST"]

[[site.route]]
path = "/plain"
respond = { status = 200, body = "plain" }

[[site.route]]
path = "/gone"
respond = { status = 410, body = "Gone for good.\n", media_type = "text/plain; charset=utf-8" }
headers = { X-Route = "gone" }

[[site.route]]
path = "/guarded"
respond = { status = 403 }

[[site.route]]
path = "/odd%2A/~(a%20b)"
respond = { status = 451 }

[[site.route]]
path = "/exact"
root = "{museum}/exact"
headers = { X-Route = "exact" }

[[site.route]]
path = "/exact/deeper"
root = "{museum}/wild"
browse = true

[[site.route]]
path = "/packed"
cache_control = [{ match = "*", value = "max-age=1" }]
"#;

fn furnish() -> Folder {
    let museum = Folder::new();
    museum
        .write("index.html", "<title>museum</title>\n")
        .write("small.txt", "small\n")
        .write("empty.txt", "")
        .write("style.css", "body { color: navy }\n")
        .write("alphabet.txt", ALPHABET)
        .date("alphabet.txt", ALPHABET_SECONDS)
        .write("folder/index.html", "the folder's index\n")
        .write("folder/page.html", "a page\n")
        .write("bare/one.txt", "one\n")
        .write("evil.example/index.html", "not at all\n")
        .write("guarded/secret.txt", SECRET)
        .write("exactly.txt", "not below /exact\n");
    for (name, _) in PATTERNS {
        museum.write(name, pattern_of(name));
    }
    for name in
        ["ü ñ.txt", "100%.txt", "%41.txt", "a+b&c.txt", "q?#;.txt", "a...txt", "a.b..txt", "~'()*!.txt"]
    {
        museum.write(&format!("names/{name}"), name);
    }
    for name in [".env", ".git/config", "folder/.htpasswd", "folder/.well-known/x"] {
        museum.write(name, SECRET);
    }
    museum.write(".well-known/acme-challenge/token", "a token");
    for (name, content) in [
        ("page.html", "as it is"),
        ("page.html.br", "packed by brotli"),
        ("page.html.zst", "packed by zstd"),
        ("page.html.gz", "packed by gzip"),
        ("only.js", "as it is"),
        ("only.js.gz", "packed by gzip"),
        ("alone.html.gz", "there is no plain file"),
    ] {
        museum.write(&format!("packed/{name}"), content);
    }
    scripts(&museum);
    museum
        .write("listed/<b>&\"'.txt", "markup")
        .write("listed/sub/index.html", "sub")
        .write("listed/.dot", SECRET);
    // No path of a request can spell these.
    for name in ["a\\b.txt", "tab\t.txt", "line\n.txt"] {
        museum.write(&format!("listed/{name}"), SECRET);
    }
    museum
        .write("listed/a:b ü.txt", "colon")
        .link("listed/broken", "nowhere")
        .link("listed/out", "../../outside.txt");
    links(&museum);
    for (name, content) in [
        ("outside.txt", SECRET),
        ("outside/index.html", SECRET),
        ("root-beside/index.html", SECRET),
        ("wild/who.txt", "wild"),
        ("exact/who.txt", "exact"),
        ("403.html", "<p>a guard of our own</p>"),
        ("404.html", "<p>a page of our own</p>"),
        ("405.txt", "a text of our own"),
        ("416.html", "<p>a range of our own</p>"),
    ] {
        let path = museum.base().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, content).expect("a file");
    }
    museum
}

/// Scripts beside files, in folders that run them and in others.
fn scripts(museum: &Folder) {
    for folder in ["", "sub/", "raw/", "with-index/"] {
        for name in [
            "b.php",
            "B.PHP",
            "b.php.",
            "b.php.gz",
            "b.phtml",
            "b.phtml.br",
            "c.cgi",
            "c.cgi~",
            ".b.php.swp",
            "index.php",
        ] {
            museum.write(&format!("../scripts/{folder}{name}"), SECRET);
        }
        museum.write(&format!("../scripts/{folder}text.txt"), "text");
    }
    museum
        .write("../scripts/sub/with-index/index.php", SECRET)
        .write("../scripts/sub/with-index/index.html", "index");
    museum
        .link("../scripts/sub/link.php", "text.txt")
        .link("../scripts/sub/other.php", "b.php")
        .link("../scripts/sub/folder", "../raw");
    museum.write("../scripts/sub/folder.php/text.txt", "in a folder");
}

/// Links within the document root and out of it, of every kind.
fn links(museum: &Folder) {
    fs::create_dir(museum.path("links")).expect("a folder");
    museum
        .link("links/in.txt", "../small.txt")
        .link("links/folder", "../folder")
        .link("links/chain.txt", "in.txt")
        .link("links/broken", "nowhere")
        .link("links/loop", "loop")
        .link("links/out.txt", "../../outside.txt")
        .link("links/absolute.txt", museum.path("small.txt"))
        .link("links/absolute-out.txt", museum.base().join("outside.txt"))
        .link("links/out", "../../outside")
        .link("links/chain-out.txt", "out.txt")
        .link("links/up", "../..");
}
