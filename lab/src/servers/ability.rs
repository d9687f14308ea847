//! What a server can do, as its file and experiments name it.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Something that one kind of server can do and another cannot.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Ability {
    /// Sends files of its root.
    Files,
    /// Writes an access log.
    Log,
    /// Speaks TLS.
    Tls,
    /// Speaks HTTP/2 over TLS.
    H2,
    /// Speaks HTTP/2 in clear with clients that know that it does.
    H2c,
    /// Passes requests below `/app` to a FastCGI application.
    Fastcgi,
    /// Passes requests for `.php` to php-fpm.
    Php,
    /// Passes requests below `/pass` to an origin.
    Proxy,
    /// Keeps what an origin answers below `/hit`.
    Cache,
    /// Compresses text for clients that accept gzip.
    Compression,
    /// Passes all requests to one of several origins, by a hash of the URL.
    Nodes,
    /// Passes all requests to one of several nodes, by the content that they are for.
    Cluster,
    /// Gives connections to nodes, or is the node that takes them.
    Handoff,
    /// Learns of nodes by etcd, or registers itself there as a node.
    Registry,
    /// Lends documents to its peers, or borrows them.
    Documents,
    /// Makes pages of so many bytes below `/generated`.
    Generated,
    /// Answers prompts, sent to `/v1/chat`.
    Prompts,
    /// Is itself a FastCGI application behind a Unix socket.
    Application,
}

impl fmt::Display for Ability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.to_possible_value().as_ref().map_or("", |value| value.get_name()))
    }
}
