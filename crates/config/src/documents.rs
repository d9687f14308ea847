//! `documents` of a site: the servers that share its load by serving documents for each other.

use std::path::PathBuf;

use baton_dcws::Origin;
use baton_dispatch::migration::LoadMetric;
use baton_pattern::Pattern;

use super::duration::{Milliseconds, Seconds};
use super::error::Complaint;
use super::kind::{Flag, Integer, Kind, ListOf, Or, Reading};
use super::media_types::MEDIA_TYPES;
use super::raw::Node;
use super::route_pattern::GLOB;
use super::schema::Schema;
use super::setting::{Inline, settings};
use super::shown::Shown;
use super::text::{FilePath, Text};
use super::words::{Word, words};

words! {
    for LoadMetric {
        /// requests per second: for sites of small files
        Requests = "requests",
        /// bytes of bodies per second: for sites of large files
        Bytes = "bytes",
        /// bytes, and 64 KiB for each request: for any site
        Both = "both",
    }
}

settings! {
    /// Servers that share the load of their sites without a front-end: each lends documents to the others while it is the busier
    /// one, and replaces the links to them. All of them have the same section but for `at` and `peers`.
    Documents in "site.documents" needs ["at", "peers", "key"] {
        /// URL of the site, as clients and the other servers reach it: `http://a.example.org`.
        at: Origin = default_origin(), Server;
        /// URLs of the other servers.
        peers: Vec<Origin> = Vec::new(), ListOf(Server);
        /// File with a secret that all of them have, such as `openssl rand -hex 32` prints. The master reads it.
        key: PathBuf = PathBuf::new(), FilePath;
        /// Whether documents of this site are lent. Off: the site only serves those of others.
        lends: bool = true, Flag;
        /// Globs of paths of documents that never move, as in a route: well-known entry points, and what scripts fetch, such as
        /// `/api/**`.
        entry_points: Vec<Pattern> = default_entry_points(), ListOf(GLOB);
        /// Media types of documents that may move, from here and to here: those that browsers take from any origin.
        types: Vec<String> = default_types(), ListOf(MEDIA_TYPES);
        /// Whether pages may move, too, from here and to here. Their scripts then run in no origin: they have no cookies, and `'self'`
        /// in policies means the other server.
        pages: bool = false, Flag;
        /// PEM file with the authorities that are trusted with certificates of `https` peers.
        authorities: Option<PathBuf> = None, Or("system", FilePath);
        /// Seconds for which a copy is served until its home is asked whether it has changed.
        copy_s: u64 = 120, Seconds(1, 86_400);
        /// Milliseconds between two decisions: one document at most moves in each.
        statistics_ms: u64 = 10_000, Milliseconds(100, HOUR_MS);
        /// Milliseconds between two questions to a peer. A peer that is gone is noticed in that time and a few seconds.
        ping_ms: u64 = 20_000, Milliseconds(100, HOUR_MS);
        /// Milliseconds that a peer may take to reply.
        reply_ms: u64 = 2_000, Milliseconds(10, 60_000);
        /// Milliseconds between two moves to or from one peer.
        peer_ms: u64 = 60_000, Milliseconds(100, HOUR_MS);
        /// Milliseconds after which a document comes home if its peer is the busier one.
        recall_ms: u64 = 300_000, Milliseconds(100, 24 * HOUR_MS);
        /// How much busier one server must be for a document to move, in percent of the other's load.
        imbalance_percent: u64 = 120, Integer(100, 10_000);
        /// What a load is. All servers have the same: the load of one that counts otherwise is not heard.
        metric: LoadMetric = LoadMetric::Both, Word::<LoadMetric>::new();
        /// Part of its server's load from which a document is worth a move, in thousandths (T). Halved until a document has it.
        threshold_permille: u64 = 10, Integer(1, 1_000);
        /// Milliseconds between two looks at the folder. A document that has changed comes home then.
        scan_ms: u64 = 60_000, Milliseconds(100, HOUR_MS);
        /// Documents that are known; others stay at home.
        documents_max: u64 = 20_000, Integer(1, 1_000_000);
    }
}

/// A table whose settings fit together.
pub(crate) struct DocumentsKind;

impl Kind for DocumentsKind {
    type Value = Documents;

    const SHOWN: Shown = Inline::<Documents>::SHOWN;

    fn accepted(&self) -> String {
        Inline::<Documents>::new().accepted()
    }

    fn schema(&self) -> Schema {
        Inline::<Documents>::new().schema()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Documents> {
        let documents = Inline::<Documents>::new().read(node, reading)?;
        let Documents { at, peers, .. } = &documents;
        let mut complain = |problem: String, label: &str| {
            reading.complain(Complaint::new(problem).at(node.span(), label));
        };
        if peers.is_empty() {
            complain("documents without another server".into(), "`peers` is empty");
            return None;
        }
        if peers.contains(at) {
            complain(format!("{at} would lend documents to itself"), "`peers` has the URL of `at`");
            return None;
        }
        if (1..peers.len()).any(|index| peers[..index].contains(&peers[index])) {
            complain("`peers` has a server twice".into(), "each is named once");
            return None;
        }
        if let Some(peer) = peers.iter().find(|peer| at.is_https() && !peer.is_https()) {
            complain(
                format!("pages of {at} may not show what comes from {peer}"),
                "browsers load no `http` into an `https` page",
            );
            return None;
        }
        Some(documents)
    }

    fn write(&self, value: &Documents) -> toml::Value {
        Inline::<Documents>::new().write(value)
    }
}

/// The URL of a server.
pub(crate) struct Server;

impl Kind for Server {
    type Value = Origin;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "a URL such as \"http://a.example.org:8080\", without a path".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Origin> {
        let text = Text.read(node, reading)?;
        text.parse().map_err(|why: &str| reading.refuse(node.span(), "is no server", why)).ok()
    }

    fn write(&self, value: &Origin) -> toml::Value {
        value.to_string().into()
    }
}

fn default_origin() -> Origin {
    "http://localhost".parse().unwrap_or_else(|_| unreachable!("an origin"))
}

fn default_entry_points() -> Vec<Pattern> {
    ["/", "/favicon.ico"].into_iter().filter_map(|glob| Pattern::glob(glob).ok()).collect()
}

fn default_types() -> Vec<String> {
    [
        "image/*",
        "video/*",
        "audio/*",
        "application/pdf",
        "application/zip",
        "application/gzip",
        "application/x-tar",
    ]
    .map(str::to_owned)
    .into()
}

const HOUR_MS: u64 = 3_600_000;

#[cfg(test)]
mod tests {
    use crate::Config;

    fn config(documents: &str) -> Result<Config, String> {
        let text = format!("[[site]]\nlisten = ['127.0.0.1:0']\nroot = '/'\ndocuments = {documents}\n");
        Config::from_toml(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_written_is_read_again() {
        let given = "{ at = 'http://a:81', peers = ['http://b', 'https://c'], key = '/k', lends = false, pages = true, types = ['x/*'], \
                     entry_points = ['/e'], authorities = '/ca', copy_s = 9, statistics_ms = 101, ping_ms = 102, reply_ms = 103, \
                     peer_ms = 104, recall_ms = 105, imbalance_percent = 106, metric = 'bytes', threshold_permille = 109, scan_ms = 107, documents_max = 108 }";
        let config = config(given).unwrap_or_else(|error| panic!("{error}"));
        let again = Config::from_toml(&config.to_toml()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.sites[0].settings.documents, config.sites[0].settings.documents);
        let documents = again.sites[0].settings.documents.clone().unwrap();
        assert_eq!((documents.copy_s, documents.scan_ms, documents.documents_max), (9, 107, 108));
    }

    #[test]
    fn questions_of_other_servers_must_be_allowed() {
        let documents = "{ at = 'http://a', peers = ['http://b'], key = '/k' }";
        assert!(config(&format!("{documents}\nmethods = ['GET', 'POST']")).is_ok());
        let why = config(&format!("{documents}\nmethods = ['GET']")).unwrap_err();
        assert!(why.contains("add `POST`"), "{why}");
    }

    #[test]
    fn servers_that_cannot_cooperate_are_refused() {
        for (documents, part) in [
            ("{ at = 'http://a', peers = [], key = '/k' }", "without another server"),
            ("{ at = 'http://a', peers = ['http://a:80'], key = '/k' }", "to itself"),
            ("{ at = 'http://a', peers = ['http://b', 'http://b'], key = '/k' }", "twice"),
            ("{ at = 'https://a', peers = ['http://b'], key = '/k' }", "may not show"),
            ("{ at = 'http://a/x', peers = ['http://b'], key = '/k' }", "no path"),
            ("{ at = 'http://a', peers = ['http://b'] }", "key"),
        ] {
            let why = config(documents).unwrap_err();
            assert!(why.contains(part), "{documents}: {why}");
        }
    }
}
