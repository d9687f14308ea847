//! `[cluster]`, and the `cluster` of a route: nodes that share the requests of a site by what each of them has in memory.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::path::PathBuf;

use baton_dispatch::PolicyName;
use baton_http::origin::HostRule;
use baton_site::cluster_key::ClusterKey;
use baton_site::plan::ClusterWay;
use baton_upstream::{OriginName, PEERS_MAX};

use super::application::Target;
use super::cluster_etcd::ClusterEtcd;
use super::error::Complaint;
use super::kind::{Flag, Integer, Kind, ListOf, Or, Reading};
use super::node_kinds::{AgentAddress, NODE_NAME, NodeUrl, PUBLIC};
use super::origin_url::OriginUrl;
use super::origins::Origin;
use super::proxy::{Proxy, check_ejection};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::setting::{Inline, Section, Table, settings};
use super::shown::Shown;
use super::text::{FilePath, Text};
use super::words::{Word, words};

words! {
    for ClusterWay {
        /// by the best way that the client and the node allow
        Auto = "auto",
        /// the client's connection goes to the node, which answers it directly; what cannot go is relayed
        HandOff = "handoff",
        /// the server stands between client and node, as a proxy
        Relay = "relay",
        /// GET and HEAD are sent to the node's own URL (307); what cannot be is relayed
        Redirect = "redirect",
    }
}

words! {
    /// Where a connection that was handed over is served after its first request.
    Kept {
        /// at the node that has it
        Stay = "stay",
        /// there if the answer is in its memory; else the front-end chooses a node anew
        Return = "return",
        /// there if the answer is in its memory; a file of another node is fetched from that node
        Fetch = "fetch",
        /// as by `fetch` where that is faster than reading the file, else as by `stay`
        Auto = "auto",
    }
}

settings! {
    /// A cluster: nodes among which the routes with `cluster` distribute their requests. All of these routes share what is known
    /// of the nodes, and the bound of what they take.
    Cluster in "cluster" {
        /// The nodes, servers of HTTP/1.1: URLs without paths, or tables with more. A node needs nothing of Baton to be relayed to.
        nodes: Vec<ClusterNode> = Vec::new(), Nodes;
        /// etcd, in which nodes register themselves: `{ endpoints = ["http://10.0.0.5:2379"] }`. They are added to those above.
        etcd: Option<ClusterEtcd> = None, Or("off", Inline::<ClusterEtcd>::new());
        /// Folder that keeps the last view of such nodes, for a start while etcd and DNS do not answer. The master creates it for the
        /// workers' user.
        state_folder: PathBuf = PathBuf::from("/var/lib/baton/cluster"), FilePath;
        /// How requests are distributed among nodes, by their paths.
        policy: PolicyName = PolicyName::LardH, Word::<PolicyName>::new();
        /// How a request gets to its node, unless the route says otherwise.
        way: ClusterWay = ClusterWay::Auto, Word::<ClusterWay>::new();
        /// Requests under way at a node of usual weight below which it has room for more: a busy node gives paths away if
        /// another has as few. `auto`: 25 of 65 parts of `t_high`.
        t_low: Option<u64> = None, Or("auto", Integer(1, 1_000_000));
        /// Requests under way at such a node above which more would have to wait there; more than `t_low`. `auto`: begins at 65,
        /// and follows what the nodes answer while requests wait for them, if `admission` is `true`.
        t_high: Option<u64> = None, Or("auto", Integer(2, 1_000_000));
        /// With `t_high = "auto"`: how much longer answers of one node may take than those of another because of the requests
        /// there, in milliseconds. It bounds `t_high`.
        delay_spread_ms: u64 = 500, Integer(1, 3_600_000);
        /// Whether requests wait in this server while all nodes together have as many under way as they can take without delay:
        /// `t_high` each, but `t_low` one of them. `false`: nodes get all requests at once.
        admission: bool = true, Flag;
        /// On a node: where connections that were handed over are served after their first request. To fetch, a node needs the
        /// `nodes`, of which it is the one whose `mover` is its own `listen`, or that it registers as.
        kept: Kept = Kept::Auto, Word::<Kept>::new();
        /// How requests are relayed: the keys of `proxy`, but for `to` and `policy`. `queue_max` and `queue_ms` also bound the
        /// requests that wait for any node.
        relay: Proxy = Proxy::default(), Relay;
        /// File with this member's certificate and key; `baton cluster key` makes one that all members share, or one for each.
        /// Members hand connections of clients over to each other. Needs a restart or an upgrade.
        key: Option<PathBuf> = None, Or("none", FilePath);
        /// Members that are none any more, by the names in their certificates. Of a shared key there are no names.
        revoked: Vec<String> = Vec::new(), ListOf(NODE_NAME);
        /// Where this host takes connections that front-ends hand over, in a network of the members: `10.0.0.11:7946`, or
        /// `:7946` on all addresses. Nodes need it.
        listen: Option<SocketAddr> = None, Or("off", AgentAddress);
        /// Unix socket of the handoff agent, which lives on when the server restarts. `auto`: the control socket's path and
        /// `.mover`, or `/run/baton/mover.sock`. Needs a restart or an upgrade.
        mover_socket: Option<PathBuf> = None, Or("auto", FilePath);
    }
}

settings! {
    /// A node. Where only its URL matters, the URL alone says the same.
    ClusterNode in "cluster.nodes" needs ["to"] {
        /// Its URL, without a path.
        to: OriginUrl = OriginUrl::in_clear(Target::Host("node".into(), 80)), NodeUrl;
        /// Its name in logs and metrics. Paths are placed by it: it must be the same in all servers that distribute requests.
        /// `auto`: host and port of the URL.
        name: Option<String> = None, Or("auto", NODE_NAME);
        /// How much it takes, in relation to the other nodes.
        weight: u64 = 1, Integer(1, 100);
        /// Whether each address of its host is a node of its own, named by address and port. They are looked up again as DNS
        /// says, and come and go.
        each_address: bool = false, Flag;
        /// The URL by which clients reach it themselves, for `way = "redirect"`: `https://b.example.org`.
        public: Option<String> = None, Or("none", PUBLIC);
        /// Where it takes connections that are handed over (`listen` in its own `[cluster]`): `10.0.0.11:7946`. Packets of
        /// clients are sent on to this address, so it must be in a network that both hosts share.
        mover: Option<SocketAddr> = None, Or("none", AgentAddress);
    }
}

settings! {
    /// How the requests of a route get to the nodes of the cluster.
    RouteCluster in "site.route.cluster" {
        /// How a request gets to its node. `cluster`: as `[cluster]` says.
        way: Option<ClusterWay> = None, Or("cluster", Word::<ClusterWay>::new());
        /// What a node is chosen by: requests with the same key go to the same node, while loads allow it. `path`; `query`: the path
        /// with its query; `header:NAME`, `cookie:NAME`; `body-prefix:BYTES`: the first bytes of the body, up to 65,536;
        /// `json:/POINTER`: a value (RFC 6901) within the first 64 KiB of a body of JSON. The path takes the place of a key that is
        /// missing.
        key: ClusterKey = ClusterKey::Path, ClusterKeyKind;
    }
}

impl ClusterNode {
    /// Its name.
    pub fn name(&self) -> Cow<'_, str> {
        match (&self.name, &self.to.target) {
            (Some(name), _) => Cow::Borrowed(name),
            (None, Target::Unix(_)) => Cow::Owned(self.to.to_string()),
            (None, _) => Cow::Owned(self.to.authority()),
        }
    }

    /// What all processes know it by.
    pub(crate) fn origin_name(&self) -> OriginName {
        OriginName { site: Cluster::SITE.into(), route: Cluster::ROUTE.into(), origin: self.to.to_string() }
    }
}

impl ClusterNode {
    /// What stands for the nodes while there is none: nothing is ever sent there.
    pub(crate) fn none() -> Self {
        let to = OriginUrl::in_clear(Target::Tcp(([0, 0, 0, 0], 1).into()));
        Self { to, name: Some("none".into()), ..Self::default() }
    }
}

impl Cluster {
    /// What stands for the site of nodes in status and metrics: no site has such a name.
    pub const SITE: &'static str = "[cluster]";

    /// What stands for their route.
    pub const ROUTE: &'static str = "/";

    /// T_low and T_high where nothing has been seen of the nodes: as set, as published, or in the published relation.
    pub fn thresholds(&self) -> (u64, u64) {
        let t_high =
            self.t_high.unwrap_or_else(|| self.t_low.map_or(65, |t_low| t_low.saturating_add(1).max(65)));
        (self.t_low.unwrap_or((t_high * 25 / 65).max(1)), t_high)
    }

    /// Its nodes as the origins of a proxy.
    pub fn as_proxy(&self) -> Proxy {
        let origin = |node: &ClusterNode| Origin { to: node.to.clone(), weight: node.weight, backup: false };
        let to = match self.known_nodes().map(origin).collect::<Vec<_>>() {
            // A node may come. Until then, requests get no further than this.
            none if none.is_empty() => vec![Origin { to: ClusterNode::none().to, ..Origin::default() }],
            origins => origins,
        };
        Proxy { to, policy: self.policy, ..self.relay.clone() }
    }

    /// The nodes that are known by an address or a name of their own.
    pub(crate) fn known_nodes(&self) -> impl Iterator<Item = &ClusterNode> {
        self.nodes.iter().filter(|node| !node.each_address)
    }
}

/// `true`, or a table: how; `false`: not at all.
pub(crate) struct ClusterKind;

impl Kind for ClusterKind {
    type Value = Option<RouteCluster>;

    const SHOWN: Shown = Inline::<RouteCluster>::SHOWN;

    fn accepted(&self) -> String {
        format!("{}, or {}", Flag.accepted(), Inline::<RouteCluster>::new().accepted())
    }

    fn schema(&self) -> Schema {
        Schema::either([Flag.schema(), Inline::<RouteCluster>::new().schema()])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Self::Value> {
        match node.get_ref() {
            Value::Table(_) => Inline::<RouteCluster>::new().read(node, reading).map(Some),
            Value::Boolean(is_on) => Some(is_on.then(RouteCluster::default)),
            _ => reading.mismatch(node, &self.accepted()),
        }
    }

    fn write(&self, value: &Self::Value) -> toml::Value {
        value.as_ref().map_or_else(|| false.into(), |cluster| Inline::<RouteCluster>::new().write(cluster))
    }
}

/// A key, by its own syntax.
struct ClusterKeyKind;

impl Kind for ClusterKeyKind {
    type Value = ClusterKey;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        ClusterKey::FORMS.into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<ClusterKey> {
        let text = Text.read(node, reading)?;
        let expected = match ClusterKey::parse(&text) {
            Ok(key) => return Some(key),
            Err(expected) => expected,
        };
        let complaint = reading.complaint("is no key").at(node.span(), expected);
        let kinds = ["path", "query", "header:", "cookie:", "body-prefix:", "json:/"];
        reading.complain(complaint.did_you_mean(&text, kinds));
        None
    }

    fn write(&self, value: &ClusterKey) -> toml::Value {
        value.to_string().into()
    }
}

/// The nodes.
struct Nodes;

impl Kind for Nodes {
    type Value = Vec<ClusterNode>;

    const SHOWN: Shown = Inline::<ClusterNode>::SHOWN.or_value();

    fn accepted(&self) -> String {
        ListOf(OneNode).accepted()
    }

    fn schema(&self) -> Schema {
        ListOf(OneNode).schema()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Vec<ClusterNode>> {
        let nodes = ListOf(OneNode).read(node, reading)?;
        if nodes.len() > PEERS_MAX {
            reading.refuse(node.span(), "has too many nodes", format!("expected up to {PEERS_MAX}"));
            return None;
        }
        let Value::Array(elements) = node.get_ref() else { return Some(nodes) };
        for (at, (one, element)) in nodes.iter().zip(elements).enumerate() {
            let before = &nodes[..at];
            let complaint = if before.iter().any(|other| other.to == one.to) {
                let complaint =
                    reading.complaint("names a node twice").at(element.span(), "was named before");
                complaint.help("to have it take more, give it a `weight`")
            } else if before.iter().any(|other| other.name() == one.name()) {
                let complaint = reading.complaint("has two nodes of one name");
                let complaint = complaint.at(element.span(), format!("is another `{}`", one.name()));
                complaint.help("give one of them another `name`")
            } else {
                continue;
            };
            reading.complain(complaint);
            return None;
        }
        Some(nodes)
    }

    fn write(&self, value: &Vec<ClusterNode>) -> toml::Value {
        ListOf(OneNode).write(value)
    }
}

/// A URL, or a table with one.
struct OneNode;

impl Kind for OneNode {
    type Value = ClusterNode;

    const SHOWN: Shown = Inline::<ClusterNode>::SHOWN.or_value();

    fn accepted(&self) -> String {
        format!("{}, or {}", NodeUrl.accepted(), Inline::<ClusterNode>::new().accepted())
    }

    fn schema(&self) -> Schema {
        Schema::either([NodeUrl.schema(), Inline::<ClusterNode>::new().schema()])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<ClusterNode> {
        match node.get_ref() {
            Value::Table(_) => Inline::<ClusterNode>::new().read(node, reading),
            _ => NodeUrl.read(node, reading).map(|to| ClusterNode { to, ..ClusterNode::default() }),
        }
    }

    fn write(&self, value: &ClusterNode) -> toml::Value {
        let is_plain = *value == ClusterNode { to: value.to.clone(), ..ClusterNode::default() };
        if is_plain { NodeUrl.write(&value.to) } else { Inline::<ClusterNode>::new().write(value) }
    }
}

/// Settings of a proxy without its origins.
struct Relay;

/// What `[cluster]` says itself.
const OF_CLUSTER: [(&str, &str); 2] = [("to", "nodes"), ("policy", "policy")];

impl Kind for Relay {
    type Value = Proxy;

    const SHOWN: Shown = Inline::<Proxy>::SHOWN;

    fn accepted(&self) -> String {
        "a table with keys of `proxy`, but for `to` and `policy`".into()
    }

    fn schema(&self) -> Schema {
        Schema::Object(Proxy::properties(), &[])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Proxy> {
        let Value::Table(entries) = node.get_ref() else {
            return reading.mismatch(node, &self.accepted());
        };
        let before = reading.complaints.len();
        let setting = reading.setting.clone();
        let mut table = Table::new(setting.clone(), entries);
        for (key, own) in OF_CLUSTER {
            if let Some(span) = table.span_of(key) {
                let complaint = Complaint::new(format!("`{setting}.{key}` is said by `cluster.{own}`"));
                reading.complain(complaint.at(span, "without effect here"));
            }
        }
        let relay = Proxy::read(&mut table, Proxy::default(), reading);
        let place = |key: &str| table.span_of(key).unwrap_or_else(|| node.span());
        if relay.host == HostRule::Origin {
            let complaint = Complaint::new("`host = \"origin\"` leaves open which of the nodes is meant");
            let complaint = complaint.at(place("host"), "a cluster has several");
            reading.complain(complaint.help("give the name of a host, or leave the client's"));
        }
        check_ejection(&relay, place("eject"), reading);
        table.finish(reading);
        reading.setting = setting;
        (reading.complaints.len() == before).then_some(relay)
    }

    fn write(&self, value: &Proxy) -> toml::Value {
        let defaults = Proxy::default().write();
        let keys = Proxy::settings().into_iter().map(|setting| setting.name);
        let written = keys.zip(value.write()).zip(defaults);
        let own = |key: &str| OF_CLUSTER.iter().all(|(other, _)| *other != key);
        let kept = written.filter(|((key, value), default)| own(key) && value != default);
        toml::Value::Table(kept.map(|((key, value), _)| (key.to_owned(), value)).collect())
    }
}
