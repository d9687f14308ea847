//! `etcd` of `[cluster]`: where nodes register, and this host as one of them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::application::Target;
use super::kind::{Integer, ListOf, Or};
use super::node_kinds::{AgentAddress, NODE_NAME, NodeUrl, PUBLIC};
use super::origin_url::OriginUrl;
use super::setting::{Inline, settings};
use super::text::{FilePath, Private, Text, TextOf, Wrong};

settings! {
    /// etcd (3.4 or later, with its JSON gateway, which is on by default): nodes register there, and all front-ends see the same
    /// nodes. While it is away, the last view counts.
    ClusterEtcd in "cluster.etcd" needs ["endpoints"] {
        /// URLs of its members: `["http://10.0.0.5:2379"]`. If one does not answer, the next one is asked.
        endpoints: Vec<String> = Vec::new(), ListOf(ENDPOINT);
        /// What the keys begin with: a cluster has its own.
        prefix: String = "/baton/".into(), Text;
        /// Seconds after which a node counts as gone that does not renew its lease. It does so at a third of that.
        ttl_s: u64 = 10, Integer(2, 3_600);
        /// Seconds for which nodes count nevertheless if most of them vanish within this time: the fault is more likely etcd's
        /// than theirs. The last nodes count until others are there.
        hold_s: u64 = 60, Integer(0, 86_400);
        /// The user that etcd knows this server by.
        user: Option<String> = None, Or("none", Private);
        /// File with that user's password. The master reads it.
        password_file: Option<PathBuf> = None, Or("none", FilePath);
        /// PEM file with the authorities of etcd's certificate, for endpoints of `https`.
        ca: Option<PathBuf> = None, Or("system", FilePath);
        /// What this host registers as, if it is a node itself: `{ to = "http://10.0.0.11", name = "a" }`.
        register: Option<ClusterRegister> = None, Or("off", Inline::<ClusterRegister>::new());
    }
}

settings! {
    /// This host as a node.
    ClusterRegister in "cluster.etcd.register" needs ["to"] {
        /// Its URL for front-ends, without a path.
        to: OriginUrl = OriginUrl::in_clear(Target::Host("node".into(), 80)), NodeUrl;
        /// Its name. `auto`: host and port of the URL.
        name: Option<String> = None, Or("auto", NODE_NAME);
        /// How much it takes, in relation to the other nodes.
        weight: u64 = 1, Integer(1, 100);
        /// The URL by which clients reach it themselves.
        public: Option<String> = None, Or("none", PUBLIC);
        /// Where it takes connections that are handed over.
        mover: Option<SocketAddr> = None, Or("none", AgentAddress);
    }
}

const ENDPOINT: TextOf = TextOf {
    accepted: "\"http://HOST:PORT\" or \"https://HOST:PORT\"",
    check: |url| match OriginUrl::parse(&url, Path::new("/")) {
        Ok(OriginUrl { target: Target::Tcp(_) | Target::Host(..), path: None, .. }) => Ok(url),
        _ => Err(Wrong::new("is not the URL of a member of etcd", "expected `http://HOST:PORT` and no path")),
    },
};
