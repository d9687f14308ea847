//! `fastcgi = {…}` and `scgi = {…}` of a route: the application that answers, and how it is talked to.

use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use super::client_addresses::{ClientAddress, ClientAddressKind};
use super::command::{Command, Processes, ProcessesKind};
use super::duration::{Milliseconds, Seconds};
use super::kind::{Bytes, Flag, Integer, Kind, ListOf, Or, Reading};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::setting::settings;
use super::shown::Shown;
use super::system::{Folder, USER_NAME};
use super::text::{Text, TextOf, Wrong};
use super::words::{Word, Words, words};

words! {
    /// How an application's responses reach the client.
    Transport {
        /// the best that the application takes up: `passfd` if it is trusted with it (`passfd_users`), else `shm`, else `unix`
        Auto = "auto",
        /// ordinary FastCGI over a Unix socket
        Unix = "unix",
        /// the same over TCP
        Inet = "inet",
        /// the application writes its responses into memory that it shares with the server
        Shm = "shm",
        /// the application answers on the client's own socket, or as by `shm` where that cannot be passed (HTTP/2, most of TLS)
        PassFd = "passfd",
    }
}

words! {
    /// What asks a process to end.
    StopSignal {
        /// the usual one
        Term = "term",
        /// php-fpm's signal to finish requests and end
        Quit = "quit",
        /// libfcgi's signal to finish a request and end
        Usr1 = "usr1",
        /// the one of Ctrl-C
        Int = "int",
    }
}

impl StopSignal {
    /// The signal of a word; the default for another word.
    pub fn of_word(text: &str) -> Self {
        Self::words().iter().find(|(word, ..)| *word == text).map_or(Self::Term, |(_, signal, _)| *signal)
    }

    /// Its number.
    pub fn number(self) -> i32 {
        let signal = match self {
            Self::Term => Signal::TERM,
            Self::Quit => Signal::QUIT,
            Self::Usr1 => Signal::USR1,
            Self::Int => Signal::INT,
        };
        signal.as_raw()
    }
}

settings! {
    /// An application: its address or command, and its transport. It may answer any request by ordinary FastCGI.
    Application in "site.route.fastcgi" {
        /// Its address: `unix:/run/app.sock`, `127.0.0.1:9000` or `php:9000`. A host name is looked up at the start, and
        /// again when the answer of DNS is too old; its addresses take turns. `command`: a private address of the
        /// processes that `command` starts.
        to: Option<Target> = None, Or("command", TargetKind);
        /// A program that is started with its arguments, and kept running: `["./app", "--verbose"]`. It begins with a
        /// listening socket as its standard input, as FastCGI has it. Either this or `to` must be given.
        command: Vec<String> = Vec::new(), Command;
        /// Number of processes, or `{ min = 2, max = 16, idle_s = 10 }`: more are started while requests wait for
        /// one; one that is idle for `idle_s` seconds (default 10) ends.
        processes: Processes = Processes::fixed(4), ProcessesKind;
        /// Requests that each process answers at a time: 1, except for programs with threads or processes of their
        /// own, such as php-fpm. No process gets more connections.
        concurrency: u64 = 1, Integer(1, 4096);
        /// Their environment: `{ APP_ENV = "production" }`. Of the server's own they have PATH, TZ, TMPDIR and what chooses
        /// the language, nothing else.
        environment: Vec<(String, String)> = Vec::new(), Pairs(|_| None);
        /// Working directory of the processes. `off`: the server's.
        directory: Option<PathBuf> = None, Or("off", Folder);
        /// User whose rights they have, where the server may change users: started as root, or by the packaged unit. `auto`:
        /// `baton-app`, or the user of the workers if it does not exist.
        user: Option<String> = None, Or("auto", USER_NAME);
        /// Seconds after which each process is replaced, so that leaks do not add up.
        lifetime_s: Option<u64> = None, Or("off", Seconds(1, 31_536_000));
        /// Requests after which each process is replaced; its successor starts first. One that answers several at a
        /// time gets a few more: those in flight when the last one arrives.
        requests_max: Option<u64> = None, Or("off", Integer(1, 1_000_000_000));
        /// Signal that asks a process to end. It gets it between two requests.
        stop_signal: StopSignal = StopSignal::Term, Word::<StopSignal>::new();
        /// Seconds that a process has to end before it is killed.
        grace_s: u64 = 5, Seconds(0, 86_400);
        /// Whether to preload the library that lets programs with their own FastCGI code, such as php-fpm, answer
        /// clients directly.
        preload: bool = false, Flag;
        /// Whether the drop-in for `libfcgi` lets processes answer clients directly that use that library.
        dropin: bool = false, Flag;
        /// How its responses reach the client.
        transport: Transport = Transport::Auto, Word::<Transport>::new();
        /// Users whose applications `transport = "auto"` trusts with clients' sockets: the user who listens at `to`
        /// must be among them. Empty: only applications started by `command`, which are always trusted. For sockets
        /// of php-fpm and systemd the listening user is root, whichever user answers.
        passfd_users: Vec<String> = Vec::new(), ListOf(USER_NAME);
        /// Whether a connection is kept after its socket was passed to an application. If not, it ends after that
        /// response, so that an application with a copy sees no further request on it.
        passfd_keep_alive: bool = true, Flag;
        /// Endings of names that the application runs, such as `[".php"]`: the route serves the files of its `root`, and
        /// these files are run instead. None: every request below the path is the application's.
        scripts: Vec<String> = Vec::new(), ListOf(ENDING);
        /// Whether requests reach the application whose paths no file could have: with an encoded slash, a backslash or an
        /// encoded control character (`%2F`, `%5C`, `%0A`), as in `/page/Main%2FSub`. Off: 400. NUL is never accepted.
        encoded_slashes: bool = true, Flag;
        /// Parameters of every request: `{ APP_ENV = "production" }`. A value replaces the parameter that the server would
        /// send by that name, such as `SCRIPT_FILENAME`, or that a field of the request would become, such as `HTTP_HOST`.
        params: Vec<(String, String)> = Vec::new(), Pairs(reserved_parameter);
        /// Proxies in front of this server who may say that a client came over `https` (`HTTPS`, `REQUEST_SCHEME`), and whose
        /// `X-Forwarded-*` and `X-Real-IP` the application gets, as with `proxy`. From all other clients it gets none.
        trusted: Vec<ClientAddress> = Vec::new(), ListOf(ClientAddressKind);
        /// Connections to it at a time, for each worker process of ours. Beyond it, requests wait for one that is idle. Of
        /// processes that are started by `command` there are as many as these answer at a time.
        connections_max: u64 = 8, Integer(1, 100_000);
        /// Whether connections are kept between requests. They are closed after a second without use, so that no
        /// process of the application is held by an idle connection.
        keep_connections: bool = true, Flag;
        /// Requests that wait, for each worker process of ours. Beyond it: 503.
        queue_max: u64 = 1_000, Integer(0, 10_000_000);
        /// Milliseconds that a request may wait for a connection. Then: 503 with `Retry-After`.
        queue_ms: u64 = 10_000, Milliseconds(1, DAY_MS);
        /// Milliseconds without progress after which a response is abandoned: 504, or the end of the connection if
        /// the client has some of it. A process that was started by `command`, and answers one request at a time, is
        /// then killed and replaced. Any other with the client's socket (`passfd`) could still answer: its client
        /// gets no 504.
        timeout_ms: u64 = 60_000, Milliseconds(1, DAY_MS);
        /// Milliseconds for which an application that writes to the client itself waits for a client that reads
        /// nothing; then the server sends the rest. At most 10 ms while other requests wait for the application.
        patience_ms: u64 = 100, Milliseconds(0, 60_000);
        /// Bytes of a request's body. Beyond it: 413. `auto`: what the route or its site says, or else 64 MiB.
        body_bytes_max: Option<u64> = None, Or("auto", Bytes(0, 1 << 50));
        /// Bytes of a request's body that are kept in memory until it is complete. A longer one with a known length
        /// is streamed, as `streamed_bodies_max` allows; any other goes to a file until it is complete.
        body_memory_bytes: u64 = 64 << 10, Bytes(0, 1 << 30);
        /// Request bodies streamed to the application at a time, for each worker process; 0: none. Each holds one of
        /// its processes for as long as its client takes, so the application should have more of them. `auto`: half
        /// of the worker's share of the requests that `processes` can answer at a time; with `to`, of the number of
        /// processes that were seen to answer at the same time in the last minutes, at first none. At most half of
        /// `connections_max`.
        streamed_bodies_max: Option<u64> = None, Or("auto", Integer(0, 4_096));
        /// Bytes of a response that wait in memory for a slow client; the rest goes to a file.
        response_memory_bytes: u64 = 256 << 10, Bytes(4 << 10, 1 << 30);
        /// Bytes of a response that wait in a file. Beyond it the application waits for the client.
        response_file_bytes_max: u64 = 1 << 30, Bytes(0, 1 << 50);
        /// Bytes of memory shared with each process of the application (`shm`).
        region_bytes: u64 = 2 << 20, Bytes(64 << 10, 1 << 30);
        /// Folder for temporary files of bodies and responses, which have no names; `limits.temporary_bytes_max`
        /// bounds them all. `auto`: the service's cache folder, if systemd provides one (`CacheDirectory`), else
        /// `/var/tmp`.
        temporary_folder: Option<PathBuf> = None, Or("auto", Folder);
        /// Whether a `Location` that is a path, without a `Status`, restarts the request within the server, as CGI has it
        /// (RFC 3875, section 6.2.2). Otherwise the client gets a 302 with it, as from nginx. `auto`: for `cgi` only.
        local_redirects: Option<bool> = None, Or("auto", Flag);
        /// Folders whose files the application may name by their paths, instead of sending them: `X-Sendfile`,
        /// `X-ZeroCopy`. The parameter `BATON_ZEROCOPY` lists them.
        named_files: Vec<PathBuf> = Vec::new(), ListOf(Folder);
        /// Folders whose files it may name by paths within the site that clients cannot request: `X-Accel-Redirect`.
        /// `{ "/protected" = "/srv/protected" }`.
        internal_files: Vec<(String, PathBuf)> = Vec::new(), Internal;
    }
}

impl Application {
    /// Folder for its temporary files.
    pub fn temporary_folder(&self) -> PathBuf {
        temporary_folder(self.temporary_folder.as_ref())
    }
}

/// Folder for temporary files, if no other is `given`.
pub(super) fn temporary_folder(given: Option<&PathBuf>) -> PathBuf {
    given.cloned().unwrap_or_else(|| cache_folder(std::env::var_os("CACHE_DIRECTORY")))
}

/// The first of the folders that systemd gives a service, with colons between them.
fn cache_folder(given: Option<OsString>) -> PathBuf {
    let first = given.as_ref().and_then(|folders| std::env::split_paths(folders).next());
    // Not /tmp: where that is in memory, a slow client would take memory after all.
    first.filter(|folder| folder.is_absolute()).unwrap_or_else(|| "/var/tmp".into())
}

const DAY_MS: u64 = 86_400_000;

/// Where an application is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A Unix socket.
    Unix(PathBuf),
    /// A TCP address.
    Tcp(SocketAddr),
    /// A host name and a port.
    Host(String, u16),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => address.fmt(f),
            Self::Host(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

/// The address of an application.
struct TargetKind;

impl Kind for TargetKind {
    type Value = Target;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "\"unix:/path\", \"127.0.0.1:9000\", \"[::1]:9000\" or \"host:9000\"".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Target> {
        let text = Text.read(node, reading)?;
        match target(&text, reading.base_at(&node.span())) {
            Ok(target) => Some(target),
            Err(why) => {
                let complaint = reading.complaint("has an address that no application can have");
                let help = format!("accepted: {}", self.accepted());
                reading.complain(complaint.at(node.span(), why).help(help));
                None
            }
        }
    }

    fn write(&self, value: &Target) -> toml::Value {
        value.to_string().into()
    }
}

/// Reads an address; a relative path is relative to `base`.
///
/// # Errors
/// What is wrong with it.
pub fn target(text: &str, base: &Path) -> Result<Target, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return match path {
            "" => Err("the path of the socket is missing".into()),
            path => Ok(Target::Unix(base.join(path))),
        };
    }
    if text.starts_with('/') {
        return Err(format!("a Unix socket is written `unix:{text}`"));
    }
    let host = || {
        let (host, port) = text.rsplit_once(':')?;
        is_host(host).then_some(Target::Host(host.to_owned(), port.parse().ok()?))
    };
    let address = text.parse().map(Target::Tcp).ok().or_else(host);
    address.ok_or_else(|| format!("`{text}` is neither an IP address nor a host name with a port"))
}

/// Whether a host may have this name. One whose last label is a number is a mistyped address.
pub(super) fn is_host(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() < 254 && name.split('.').all(is_label) && !last.bytes().all(|byte| byte.is_ascii_digit())
}

/// The ending of a name.
const ENDING: TextOf = TextOf {
    accepted: "an ending such as \".php\"",
    check: |ending| match ending.starts_with('.') && ending.len() > 1 && !ending.contains('/') {
        true => Ok(ending),
        false => Err(Wrong::new("is not the ending of a name", "expected something like \".php\"")),
    },
};

/// Folders by path.
struct Internal;

impl Kind for Internal {
    type Value = Vec<(String, PathBuf)>;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "a table of folders by path: { \"/protected\" = \"FOLDER\" }".into()
    }

    fn schema(&self) -> Schema {
        Schema::table_of(Schema::TEXT)
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Vec<(String, PathBuf)>> {
        let Value::Table(entries) = node.get_ref() else {
            return reading.mismatch(node, &self.accepted());
        };
        let mut folders = Some(Vec::new());
        for (key, value) in entries {
            if !key.get_ref().starts_with('/') {
                reading.refuse(key.span(), "has a path without a `/` in front", "expected \"/…\"");
                folders = None;
            }
            let folder = Folder.read(value, reading);
            folders = folders.zip(folder).map(|(mut folders, folder)| {
                folders.push((key.get_ref().clone(), folder));
                folders
            });
        }
        folders
    }

    fn write(&self, value: &Vec<(String, PathBuf)>) -> toml::Value {
        let entry = |(path, folder): &(String, PathBuf)| (path.clone(), Folder.write(folder));
        toml::Value::Table(value.iter().map(entry).collect())
    }
}

/// Texts by name. The function says why a name cannot be set.
struct Pairs(fn(&str) -> Option<&'static str>);

/// Why a parameter cannot be set: the framing of requests depends on it.
fn reserved_parameter(name: &str) -> Option<&'static str> {
    match name {
        "CONTENT_LENGTH" | "HTTP_CONTENT_LENGTH" => Some("it follows from the body that the client sends"),
        "HTTP_TRANSFER_ENCODING" => Some("the application gets bodies without a coding"),
        "SCGI" => Some("it is the version of the protocol"),
        _ if name.starts_with("BATON_") => {
            Some("names that begin with `BATON_` belong to the hand-over protocol")
        }
        _ => None,
    }
}

impl Kind for Pairs {
    type Value = Vec<(String, String)>;

    const SHOWN: Shown = Shown::Names;

    fn accepted(&self) -> String {
        "a table of strings: { NAME = \"VALUE\" }".into()
    }

    fn schema(&self) -> Schema {
        Schema::table_of(Schema::TEXT)
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Vec<(String, String)>> {
        let Value::Table(entries) = node.get_ref() else {
            return reading.mismatch(node, &self.accepted());
        };
        let mut pairs = Some(Vec::new());
        for (key, value) in entries {
            let name = key.get_ref();
            let problem = match (self.0)(name) {
                Some(why) => Some(("sets a parameter that only the server may set", why)),
                None if name.is_empty() || name.contains(['=', '\0']) => {
                    Some(("has a name that no variable can have", "expected letters and `_`"))
                }
                None => None,
            };
            if let Some((problem, label)) = problem {
                reading.refuse(key.span(), problem, label);
                pairs = None;
            }
            let text = value.get_ref().as_str().filter(|text| !text.contains('\0'));
            let text = text.or_else(|| reading.mismatch(value, "a string"));
            pairs = pairs.zip(text).map(|(mut pairs, text)| {
                pairs.push((name.clone(), text.to_owned()));
                pairs
            });
        }
        pairs
    }

    fn write(&self, value: &Vec<(String, String)>) -> toml::Value {
        let entry = |(name, value): &(String, String)| (name.clone(), value.as_str().into());
        toml::Value::Table(value.iter().map(entry).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_are_where_the_service_may_write() {
        let chosen = |given: Option<&str>| cache_folder(given.map(Into::into));
        assert_eq!(chosen(None), Path::new("/var/tmp"));
        assert_eq!(chosen(Some("")), Path::new("/var/tmp"));
        assert_eq!(chosen(Some("/var/cache/baton:/var/cache/more")), Path::new("/var/cache/baton"));
    }

    #[test]
    fn addresses() {
        let shown = |text| target(text, Path::new("/base")).map(|target| target.to_string());
        assert_eq!(shown("unix:run/a.sock").unwrap(), "unix:/base/run/a.sock");
        assert_eq!(shown("localhost:9000").unwrap(), "localhost:9000", "each of its addresses");
        assert_eq!(shown("[::1]:9000").unwrap(), "[::1]:9000");
        assert!(shown("/run/a.sock").unwrap_err().contains("unix:/run/a.sock"));
        for host in ["php:9000", "app_1.internal:9000", "example.org.:80", "1.2.3.x:80"] {
            assert_eq!(shown(host).unwrap(), host);
        }
        for wrong in
            ["example.org", "example.org:", "a:99999", ":80", "1.2.3:80", "a b:80", "a..b:80", "::1:80"]
        {
            assert!(shown(wrong).unwrap_err().contains("neither an IP address nor a host name"), "{wrong}");
        }
        assert!(shown("unix:").is_err());
    }
}
