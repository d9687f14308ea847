//! A site whose routes are cached, its origin, and what tests ask of both.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, OnceLock};

use crate::common::agent::{Agent, Body};
use crate::common::client::Response;
use crate::common::folder::{Folder, pattern};
use crate::common::protocol::Protocol;
use crate::common::server::{PATIENCE, Server, wait_until};
use crate::common::{ARCHITECTURES, processes};
use crate::films::FILMS;
use crate::origin::{Origin, Peer, Seen};

/// A server with one cache, and the origin behind it.
pub(crate) struct Site {
    pub(crate) server: Server,
}

/// The origin of all servers. Its response is what the request's field `X-Answer` says: the status and the fields with a
/// bar between them, and behind two bars the body; see [`act`].
pub(crate) static ORIGIN: LazyLock<Origin> = LazyLock::new(|| Origin::start(serve));

/// What tests have allowed to go on, by the path of the request.
static ALLOWED: LazyLock<(Mutex<HashMap<String, usize>>, Condvar)> = LazyLock::new(Default::default);

impl Site {
    /// A server of its own.
    pub(crate) fn start(architecture: &str) -> Self {
        // A process has a cache, and under `mp` a process has one client.
        let configuration = SITE
            .replace("{architecture}", architecture)
            .replace("{processes}", &processes(architecture, 1).to_string())
            .replace("{origin}", &ORIGIN.address().to_string())
            .replace("{films}", &FILMS.address().to_string());
        Self { server: Server::run(Folder::new(), &configuration) }
    }

    /// The same for clients of a protocol.
    pub(crate) fn over(&self, protocol: Protocol) -> Self {
        Self { server: self.server.over(protocol) }
    }

    /// A client, with a path that no other has.
    pub(crate) fn visitor(&self, test: &str) -> Visitor {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = format!("/c/{test}-{:?}-{number}", self.server.protocol());
        Visitor { agent: self.server.agent(), path }
    }

    /// What the access log says that the cache did with requests, in the order of words, once there are so many.
    #[track_caller]
    pub(crate) fn words_of(&self, path: &str, count: usize) -> Vec<String> {
        let file = self.server.folder().base().join("access.log");
        let words = || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let whole = text.rfind('\n').map_or("", |end| &text[..end]);
            let lines = whole.lines().filter(|line| line.contains(&format!(" {path} ")));
            let line = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON");
            lines.map(|text| line(text)["cache"].as_str().unwrap_or("-").to_owned()).collect::<Vec<_>>()
        };
        wait_until(&format!("{count} lines of {path} in the log"), || words().len() >= count);
        let mut words = words();
        words.sort_unstable();
        words
    }
}

/// A client and its path.
pub(crate) struct Visitor {
    pub(crate) agent: Agent,
    pub(crate) path: String,
}

impl Visitor {
    /// Asks for the path, of an origin that would answer so.
    pub(crate) fn get(&mut self, answer: &str) -> Response {
        self.ask("GET", answer, "")
    }

    /// The same with a method and more fields, which are complete lines.
    pub(crate) fn ask(&mut self, method: &str, answer: &str, fields: &str) -> Response {
        let path = self.path.clone();
        self.agent.ask(method, &path, &format!("X-Answer: {answer}\r\n{fields}"))
    }

    /// Begins such a request.
    pub(crate) fn begin(&mut self, answer: &str, fields: &str) {
        let fields = format!("X-Answer: {answer}\r\n{fields}");
        self.agent.begin("GET", "localhost", &self.path, &fields, Body::None);
    }

    /// The requests for the path that the origin has seen.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        ORIGIN.seen(&format!(" {} ", self.path["/c".len()..].to_owned()))
    }
}

/// What the cache did: the parameters of its member of Cache-Status, without the time.
pub(crate) fn status(response: &Response) -> String {
    let status = response.field("cache-status").unwrap_or_default();
    let parts = status.split("; ").filter(|part| !part.starts_with("ttl="));
    parts.collect::<Vec<_>>().join("; ")
}

/// Lets the origin go on with a request for this path that waits, once.
pub(crate) fn allow(path: &str) {
    *ALLOWED.0.lock().expect("no panic").entry(path["/c".len()..].to_owned()).or_default() += 1;
    ALLOWED.1.notify_all();
}

fn wait_until_allowed(path: &str) {
    let allowed = ALLOWED.0.lock().expect("no panic");
    let is_waiting = |allowed: &mut HashMap<String, usize>| allowed.get(path).is_none_or(|times| *times == 0);
    let (mut allowed, _) = ALLOWED.1.wait_timeout_while(allowed, PATIENCE, is_waiting).expect("no panic");
    if let Some(times) = allowed.get_mut(path) {
        *times = times.saturating_sub(1);
    }
}

fn serve(peer: &mut Peer) {
    while let Some(seen) = peer.request() {
        let answer = seen.field("x-answer").unwrap_or("200|Cache-Control: max-age=60||ok").to_owned();
        if !act(peer, &seen, &answer) {
            return;
        }
    }
}

/// Answers. `only NAME` in front of the status answers 404 if the path does not end in that name, `wait` waits for [`allow`]
/// first, `hint` sends two hints and waits behind each. A body `#N` has N bytes of a pattern, `~N` the same in
/// chunks, `%N` the half of it: then the connection ends; `^N` waits in its middle. Returns whether the connection goes on.
fn act(peer: &mut Peer, seen: &Seen, answer: &str) -> bool {
    let (head, body) = answer.split_once("||").unwrap_or((answer, ""));
    let mut parts = head.split('|');
    let mut status = parts.next().expect("a status");
    let mut is_missing = false;
    if let Some((name, rest)) = status.strip_prefix("only ").and_then(|rest| rest.split_once(' ')) {
        is_missing = !seen.path().ends_with(name);
        status = rest;
    }
    if let Some(rest) = status.strip_prefix("wait ") {
        wait_until_allowed(seen.path());
        status = rest;
    }
    if let Some(rest) = status.strip_prefix("hint ") {
        for _ in 0..2 {
            peer.send(HINT);
            wait_until_allowed(seen.path());
        }
        status = rest;
    }
    if status == "gone" {
        peer.reset();
        return false;
    }
    if is_missing {
        status = "404";
    }
    let fields: String = parts.map(|field| format!("{field}\r\n")).collect();
    let number = |text: &str| text.parse().expect("a number");
    let (bytes, manner) = match body.split_at(body.len().min(1)) {
        (manner @ ("#" | "~" | "%" | "^"), count) => (pattern(number(count), 7), manner),
        _ => (body.as_bytes(), "#"),
    };
    let head = match (manner, status) {
        ("~", _) => format!("HTTP/1.1 {status} Fine\r\n{fields}Transfer-Encoding: chunked\r\n\r\n"),
        (_, "304" | "204") => format!("HTTP/1.1 {status} Fine\r\n{fields}\r\n"),
        _ => format!("HTTP/1.1 {status} Fine\r\n{fields}Content-Length: {}\r\n\r\n", bytes.len()),
    };
    peer.send(head);
    if seen.line().starts_with("HEAD ") {
        return true;
    }
    let (first, second) = bytes.split_at(bytes.len() / 2);
    match manner {
        "~" => {
            for chunk in bytes.chunks(10_000) {
                peer.send([format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
            }
            peer.send("0\r\n\r\n");
        }
        "%" => {
            peer.send(first);
            return false;
        }
        "^" => {
            peer.send(first);
            wait_until_allowed(seen.path());
            peer.send(second);
        }
        _ => peer.send(bytes),
    }
    true
}

/// The site under an architecture, one server for all tests.
pub(crate) fn site(architecture: &str) -> &'static Site {
    static SITES: [OnceLock<Site>; ARCHITECTURES.len()] = [const { OnceLock::new() }; _];
    let index = ARCHITECTURES.iter().position(|word| *word == architecture).expect("an architecture");
    SITES[index].get_or_init(|| Site::start(architecture))
}

/// An interim response.
pub(crate) const HINT: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";

const SITE: &str = r#"
architecture = "{architecture}"
processes = {processes}
[log]
access = "{base}/access.log"
format = "json"
flush_ms = 10
[shared_cache]
memory_bytes_max = "64 MiB"
[[site]]
name = "front"
{listen}
[[site.route]]
path = "/c"
proxy = "http://{origin}/"
cache = { unkeyed_fields = ["X-Answer", "X-Kind"] }
[[site.route]]
path = "/c/ahead"
proxy = "http://{origin}/ahead"
cache = { prefetch = 2, unkeyed_fields = ["X-Answer", "X-Session"] }
[[site.route]]
path = "/c/behind"
proxy = { to = "http://{origin}/behind", trusted = ["127.0.0.0/8"] }
cache = { unkeyed_fields = ["X-Answer"] }
[[site.route]]
path = "/film"
proxy = "http://{films}/"
cache = { unkeyed_fields = ["X-Answer", "X-Kind"] }
"#;
