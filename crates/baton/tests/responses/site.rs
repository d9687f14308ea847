//! The servers that give the answers: one site with all that applications and origins answer, and what each kind needs
//! beside it.

use std::fs;
use std::sync::OnceLock;

use crate::applications::{answer_fastcgi, answer_scgi};
use crate::backends;
use crate::common::certificate;
use crate::common::folder::{Folder, install_program};
use crate::common::server::Server;
use crate::documents::{self, Documents};
use crate::kinds::Kind;
use crate::origin::Origin;
use crate::proof::{self, Proof};

/// All servers of a run.
pub(crate) struct Stage {
    /// Whether `server_header` is on.
    pub(crate) names_server: bool,
    main: Server,
    _origin: Origin,
    /// In clear, and over TLS: links say which.
    documents: [OnceLock<Documents>; 2],
    proof: OnceLock<Option<Proof>>,
}

impl Stage {
    pub(crate) fn start(names_server: bool) -> Self {
        let folder = Folder::new();
        folder.write("page.html", backends::page()).write("410.html", backends::page());
        for number in 0..40 {
            folder.write(&format!("own/listing/a-file-with-a-name-{number}.txt"), "");
        }
        folder.write("own/cgi/about.txt", "");
        install_program(&folder.path("own/cgi/page.cgi"), backends::program());
        let named = folder.base().join("named");
        fs::create_dir(&named).expect("a folder");
        fs::write(named.join("page.html"), backends::page()).expect("a file");
        let mut routes = ROUTES.to_owned();
        for transport in ["unix", "shm", "passfd"] {
            answer_fastcgi(&folder.base().join(format!("{transport}.sock")), backends::answer);
            routes.push_str(&FASTCGI.replace("{transport}", transport));
        }
        answer_scgi(&folder.base().join("scgi.sock"), backends::answer);
        let origin = backends::start_origin();
        let routes = routes
            .replace("{fields}", &field_rules(ROUTE))
            .replace("{origin}", &origin.address().to_string());
        let main = run(folder, names_server, &both_sites(&format!("{}{routes}", fixed())));
        let documents = [const { OnceLock::new() }; 2];
        Self { names_server, main, _origin: origin, documents, proof: OnceLock::new() }
    }

    /// The server that gives answers of this kind to clients in clear or over TLS.
    pub(crate) fn server(&self, kind: Kind, is_secure: bool) -> &Server {
        match kind {
            Kind::Rewritten | Kind::Away => {
                let documents = &self.documents[usize::from(is_secure)];
                &documents.get_or_init(|| documents::start(self.names_server, is_secure)).home
            }
            Kind::AcmeProof => self.proof().map_or(&self.main, Proof::server),
            _ => &self.main,
        }
    }

    /// A proof that an authority asks for; `None`: there is no authority here.
    pub(crate) fn proof(&self) -> Option<&Proof> {
        self.proof.get_or_init(|| proof::start(self.names_server)).as_ref()
    }
}

/// Starts a server with the settings that all have, and these sites and sections.
pub(crate) fn run(folder: Folder, names_server: bool, sites: &str) -> Server {
    certificate::install(folder.base());
    Server::run(
        folder,
        &format!("user = \"nobody\"\nprocesses = 1\nserver_header = {names_server}\n{LOG}{sites}"),
    )
}

/// A site in clear and one over TLS, with the same routes: HSTS is for sites that have no address in clear.
pub(crate) fn both_sites(routes: &str) -> String {
    site("127.0.0.1:0", false, routes) + &site("127.0.0.2:0", true, routes)
}

/// A site at an address. `more`: further settings of it, and its routes.
pub(crate) fn site(listen: &str, is_secure: bool, more: &str) -> String {
    let (name, tls, own) = if is_secure { ("sealed", " tls", SECURE) } else { ("clear", "", "") };
    let settings = SETTINGS.replace("{fields}", &field_rules(SITE));
    format!("[[site]]\nname = \"{name}\"\nlisten = [\"{listen}{tls}\"]\n{own}{settings}{more}")
}

/// Whose rules for fields hold for a path.
pub(crate) fn scope(path: &str) -> &'static str {
    if path.starts_with("/own/") { ROUTE } else { SITE }
}

/// One rule of each sort, with the scope as the value.
fn field_rules(scope: &str) -> String {
    format!(
        "headers = {{ set = {{ X-Set = \"{scope}\" }}, add = {{ X-Add = \"{scope}\" }}, remove = [\"X-Removed\"], \
         default = {{ X-Default = \"{scope}\", X-Kept = \"{scope}\" }} }}"
    )
}

/// The route whose answer has a text.
fn fixed() -> String {
    let text = backends::page().replace('\n', "");
    format!(
        "[[site.route]]\npath = \"/own/fixed\"\nrespond = {{ status = 200, body = \"{text}\" }}\n{}\n",
        field_rules(ROUTE)
    )
}

const SITE: &str = "site";
const ROUTE: &str = "route";

/// Value of the fields of applications and origins.
pub(crate) const OF_OTHERS: &str = "of-others";

pub(crate) const HSTS: &str = "max-age=600";

const LOG: &str = r#"
[log]
access = "{base}/log"
format = "json"
fields = ["time", "request", "status", "request_id", "trace_id"]
flush_ms = 10
"#;

const SECURE: &str = r#"
hsts = "max-age=600"
tls = { certificate = "{base}/localhost.pem", key = "{base}/localhost.key" }
"#;

const SETTINGS: &str = r#"
root = "{root}"
compress = true
request_id = true
cors = { origins = ["https://app.example"], credentials = true, expose = ["X-Total"] }
error_pages = { 410 = "410.html" }
{fields}
"#;

const ROUTES: &str = r#"
[[site.route]]
path = "/own/gone"
respond = { status = 410 }
{fields}
[[site.route]]
path = "/own/moved"
redirect = { to = "/elsewhere" }
{fields}
[[site.route]]
path = "/own/listing"
browse = true
{fields}
[[site.route]]
path = "/own/denied"
deny = ["127.0.0.0/8"]
{fields}
[[site.route]]
path = "/own/rare"
rate_limit = { requests = 1, per = "1d" }
{fields}
[[site.route]]
path = "/own/users"
basic_auth = { users = { ada = "$2y$04$M8GN1LhxmWzK34qTmzdeB.JoTi2x7t9.WZghfLTSiQkvuJujEDW9." } }
{fields}
[[site.route]]
path = "/own/bounded"
fastcgi = { to = "unix:{base}/unix.sock", body_bytes_max = 10 }
{fields}
[[site.route]]
path = "/own/slow"
fastcgi = { to = "unix:{base}/unix.sock" }
body_ms = "50ms"
{fields}
[[site.route]]
path = "/own/cgi"
cgi = { scripts = [".cgi"] }
{fields}
[[site.route]]
path = "/own/scgi"
scgi = { to = "unix:{base}/scgi.sock" }
{fields}
[[site.route]]
path = "/own/origin"
proxy = "http://{origin}"
{fields}
[[site.route]]
path = "/own/cached"
proxy = "http://{origin}"
cache = true
{fields}
"#;

const FASTCGI: &str = r#"
[[site.route]]
path = "/own/{transport}"
{fields}
[site.route.fastcgi]
to = "unix:{base}/{transport}.sock"
transport = "{transport}"
passfd_users = ["{user}"]
params = { NAMED = "{base}/named" }
named_files = ["{base}/named"]
internal_files = { "/internal" = "{base}/named" }
"#;
