//! Loads, as a file has them: a closed list of kinds.

use std::collections::{BTreeMap, BTreeSet};

use baton_load::LoadRequest;
use baton_load::sessions::{SessionLoad, usual};
use serde::Deserialize;

use crate::servers::Ability;

/// What clients do in a cell.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum LoadText {
    /// Each connection sends its next request when its response is complete.
    Closed(ClosedText),
    /// Requests are due at a steady rate, whatever became of earlier ones.
    Paced(PacedText),
    /// Sessions of the site's script, which come at a rate that does not depend on the server.
    Sessions(SessionLoad),
    /// `h2load`: HTTP/1.1 or HTTP/2, in clear or over TLS.
    H2load(H2loadText),
    /// `openssl s_time`: a connection after the other, with a request on each.
    Handshakes {
        #[serde(default)]
        resumed: bool,
    },
    /// Connections with TLS that make a request each and then stay silent.
    IdleTls { connections: usize },
    /// Fast clients, alone and beside clients that take a kilobyte a second.
    SlowReaders(SlowReadersText),
    /// A closed loop while something happens to the cluster that is asked.
    Fault(FaultText),
    /// Visitors that read pages with their images, and follow links, until the load is spread among servers.
    Visits { visitors: usize },
    /// One request after the other, with server and application under strace: what they copy.
    Traced { path: String, responses: u64 },
    /// One request after the other, with the server stopped after each instruction.
    Stepped {
        path: String,
        #[serde(default)]
        close: bool,
    },
}

/// A closed loop.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClosedText {
    #[serde(default = "usual::<64>")]
    pub(crate) connections: usize,
    pub(crate) ask: Ask,
    /// A connection for each request.
    #[serde(default)]
    pub(crate) close: bool,
    /// Silent connections beside.
    #[serde(default)]
    pub(crate) idle: usize,
    /// More fields of each request.
    #[serde(default)]
    pub(crate) fields: BTreeMap<String, String>,
    /// A body of each request.
    pub(crate) upload: Option<UploadText>,
    /// With `ask = "script"`: only its beginning, until the files that it asks for are so large.
    pub(crate) set_mib: Option<f64>,
    /// The client sleeps when it has nothing to do, so that an origin on its CPU can run.
    #[serde(default)]
    pub(crate) sleep: bool,
    /// Each body is read and compared with the first of its path.
    #[serde(default)]
    pub(crate) verify: bool,
}

/// What clients send.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UploadText {
    pub(crate) method: String,
    pub(crate) bytes: usize,
    /// As the file of a form, `multipart/form-data`, whose name is `file`.
    #[serde(default)]
    pub(crate) form: bool,
}

/// A load at a steady rate, alone first, then beside another.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PacedText {
    pub(crate) connections: usize,
    pub(crate) requests_per_second: f64,
    pub(crate) ask: Ask,
    pub(crate) beside: Option<Beside>,
}

/// A closed loop beside the load that is measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Beside {
    pub(crate) connections: usize,
    pub(crate) ask: Ask,
}

/// What `h2load` does.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct H2loadText {
    pub(crate) protocol: ProtocolName,
    pub(crate) connections: usize,
    /// Requests at the same time on each connection.
    #[serde(default = "usual::<1>")]
    pub(crate) streams: usize,
    /// One, or several, for which each connection asks in turn.
    pub(crate) path: Ask,
    /// More fields of each request.
    #[serde(default)]
    pub(crate) fields: BTreeMap<String, String>,
}

/// A version of HTTP and what carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProtocolName {
    Http1Tls,
    Http2Tls,
    Http2Clear,
}

/// Fast clients and slow ones.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SlowReadersText {
    /// Of the fast clients.
    pub(crate) connections: usize,
    pub(crate) ask: Ask,
    pub(crate) readers: usize,
    pub(crate) readers_per_second: f64,
    /// What slow ones ask for.
    pub(crate) slow_path: String,
}

/// A closed loop whose clients read every body, and what happens to the cluster a second later.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FaultText {
    pub(crate) connections: usize,
    pub(crate) ask: Ask,
    pub(crate) fault: FaultName,
}

/// Something that happens to a cluster. What a node suffers ends after a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FaultName {
    Nothing,
    NodeKilled,
    NodeCutOff,
    NodeHangs,
    /// Its link carries little.
    NodeSlow,
    NodeDrained,
    NodeJoins,
    WorkerKilled,
    WorkersReplaced,
    FrontUpgraded,
    FrontRestarted,
}

/// What is asked for, in turn.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Ask {
    /// One path, or a sequence that the site has: [`SEQUENCES`].
    One(String),
    Paths(Vec<String>),
}

impl LoadText {
    /// A closed loop that asks for what the site's script has.
    pub(crate) fn of_script() -> Self {
        Self::Closed(ClosedText::of(64, Ask::default()))
    }

    /// What a server must be able to do for it.
    pub(crate) fn needs(&self) -> BTreeSet<Ability> {
        let coded = |fields| accepts_codings(fields).then_some(Ability::Compression);
        let (paths, abilities): (Vec<&str>, Vec<Ability>) = match self {
            Self::Closed(load) => (load.ask.paths(), coded(&load.fields).into_iter().collect()),
            Self::Paced(load) => (load.ask.paths(), vec![]),
            Self::SlowReaders(load) => (load.ask.paths(), vec![]),
            Self::Fault(load) => (load.ask.paths(), vec![]),
            Self::Stepped { path, .. } | Self::Traced { path, .. } => (vec![path], vec![]),
            Self::Sessions(_) => (vec![], vec![]),
            // Scripts ask for files.
            Self::Visits { .. } => (vec!["/"], vec![]),
            Self::Handshakes { .. } | Self::IdleTls { .. } => (vec![], vec![Ability::Tls]),
            Self::H2load(load) => {
                let of_protocol = match load.protocol {
                    ProtocolName::Http1Tls => vec![Ability::Tls],
                    ProtocolName::Http2Tls => vec![Ability::Tls, Ability::H2],
                    ProtocolName::Http2Clear => vec![Ability::H2c],
                };
                (load.path.paths(), of_protocol.into_iter().chain(coded(&load.fields)).collect())
            }
        };
        // The site knows what its script needs.
        let of_paths = paths.into_iter().filter(|path| *path != SCRIPT).map(ability_of);
        of_paths.chain(abilities).collect()
    }
}

impl ClosedText {
    /// Of these requests over kept connections, and nothing else.
    pub(crate) fn of(connections: usize, ask: Ask) -> Self {
        Self { connections, ask, ..Self::default() }
    }
}

impl Default for Ask {
    fn default() -> Self {
        Self::One(SCRIPT.to_owned())
    }
}

impl UploadText {
    /// Gives it to a request, with the field that says what it is.
    pub(crate) fn add_to(&self, request: &mut LoadRequest) {
        let (begin, end, field) = if self.form { FORM } else { ("", "", "") };
        request.method = self.method.clone().into();
        request.fields += field;
        request.body = [begin, &"b".repeat(self.bytes), end].concat();
    }
}

impl Ask {
    /// The paths; of a sequence its name.
    pub(crate) fn paths(&self) -> Vec<&str> {
        match self {
            Self::One(path) => vec![path],
            Self::Paths(paths) => paths.iter().map(String::as_str).collect(),
        }
    }
}

/// What answers at this path: `lab/src/servers` has the table.
pub(crate) fn ability_of(path: &str) -> Ability {
    let before_query = path.split('?').next().unwrap_or(path);
    match before_query.split('/').nth(1) {
        _ if before_query.ends_with(".php") => Ability::Php,
        Some("app") => Ability::Fastcgi,
        Some("pass") => Ability::Proxy,
        Some("hit") => Ability::Cache,
        Some("generated") => Ability::Generated,
        Some("v1") => Ability::Prompts,
        _ => Ability::Files,
    }
}

/// Whether clients take compressed bodies, whose length is the server's affair.
pub(crate) fn accepts_codings(fields: &BTreeMap<String, String>) -> bool {
    fields.contains_key("Accept-Encoding")
}

/// Sequences of a site: its mix; files that are not in memory; files that always are; the script of a site after a source.
pub(crate) const SEQUENCES: [&str; 4] = ["mix", "cold", "resident", SCRIPT];

/// The sequence of a site that has a script.
const SCRIPT: &str = "script";

/// What stands before a file in a form, what stands behind it, and the form's type.
const FORM: (&str, &str, &str) = (
    "--of-a-form\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\nContent-Type: application/octet-stream\r\n\r\n",
    "\r\n--of-a-form--\r\n",
    "Content-Type: multipart/form-data; boundary=of-a-form\r\n",
);
