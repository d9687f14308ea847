//! The nodes of a cluster, for one of them: from which node it gets a file that it has not in memory.

use std::sync::Arc;

use baton_dispatch::{FetchRule, Target, Why, home};
use baton_shares::ClientKey;

use super::failure_window::Asker;
use super::{Peers, Turn};
use crate::{Application, Choice, ChoiceKey, Way};

/// The nodes of a cluster, one of which is this host.
#[derive(Clone, Debug)]
pub struct Homes {
    peers: Arc<Peers>,
    own: usize,
    rule: FetchRule,
}

/// What a node would do for a file that it has not in memory.
#[derive(Clone, Debug)]
pub struct RehearsedFetch {
    /// The file's home; `None`: this host.
    pub home: Option<Arc<Application>>,
    /// Whether the file is fetched from there.
    pub is_fetched: bool,
    /// How long reading a file here takes, in microseconds, as measured lately.
    pub read_us: f64,
    /// How long fetching one takes, in microseconds.
    pub fetch_us: f64,
}

impl Homes {
    /// The nodes, and which of them this host is. `None`: none has this name.
    pub fn new(peers: Arc<Peers>, own: &str, rule: FetchRule) -> Option<Self> {
        let own = peers.crew.members().position(|(member, _)| member.name == own)?;
        Some(Self { peers, own, rule })
    }

    /// All nodes.
    pub fn peers(&self) -> &Arc<Peers> {
        &self.peers
    }

    /// The turn of a request at the home of its path; `None`: this host is to answer from its own disk. `client`: whose failures
    /// they are.
    pub fn seek(&self, path: &[u8], client: Option<ClientKey>, now_ms: u64) -> Option<Turn> {
        let (crew, hash) = (&self.peers.crew, self.peers.hash(path));
        let home = {
            let mut balance = self.peers.balance();
            let (cluster, fetches) = balance.homes(crew, now_ms)?;
            let node = fetches.source(self.rule, crew.node(self.own), Target::new(hash), cluster)?;
            let home = crew.peer(node)?;
            // It counts for the home's load until the turn ends.
            cluster.begin(node);
            home
        };
        let choice = Choice { why: Why::Hashed.word(), way: Way::Fetch, key: ChoiceKey::Path };
        let asker = Asker::new(client, path);
        Some(Turn::at(Arc::clone(&self.peers), home, hash, asker, Some(choice), now_ms))
    }

    /// A file that was not in memory has been read here in so many microseconds.
    pub fn note_read(&self, us: u64) {
        self.peers.balance().fetches.note_read(us);
    }

    /// The answer of a home that had the file in memory has begun so many microseconds after it was asked.
    pub fn note_fetched(&self, us: u64) {
        self.peers.balance().fetches.note_fetched(us);
    }

    /// A home has not answered, or refuses to.
    pub fn note_failed(&self) {
        self.peers.balance().fetches.note_failed();
    }

    /// What would be done with a request for this path.
    pub fn rehearse(&self, path: &[u8], now_ms: u64) -> RehearsedFetch {
        let (crew, target) = (&self.peers.crew, Target::new(self.peers.hash(path)));
        let mut balance = self.peers.balance();
        let node = balance.homes(crew, now_ms).and_then(|(cluster, _)| home(target, cluster));
        let peer = node.and_then(|node| crew.peer(node)).filter(|peer| *peer != self.own);
        let home = peer.map(|peer| Arc::clone(self.peers.application(peer)));
        let fetches = balance.fetches;
        let is_fetching = self.rule == FetchRule::Always || fetches.is_fetching();
        RehearsedFetch {
            is_fetched: home.is_some() && is_fetching,
            home,
            read_us: fetches.read_us(),
            fetch_us: fetches.fetch_us(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use baton_dispatch::PolicyName;

    use super::*;
    use crate::{Address, BalanceSettings, Endpoint, Peer, Settings};

    fn peers_named(names: &[&str]) -> Arc<Peers> {
        let peer = |name: &&str| {
            let endpoint = Endpoint::Shared(Address::Inet(([127, 0, 0, 1], 1).into()));
            let settings =
                Settings { node: Some((*name).into()), ..Settings::new(format!("http://{name}"), endpoint) };
            Peer {
                application: Application::new(settings).expect("an origin"),
                weight: 1,
                is_backup: false,
                check_text: Vec::new(),
                public: None,
            }
        };
        let settings = BalanceSettings {
            policy: PolicyName::LardH,
            ejection: None,
            check: None,
            slow_start_ms: 0,
            cluster: None,
        };
        Peers::new(names.iter().map(peer).collect(), &settings).expect("nodes")
    }

    /// Goal: all nodes agree on the home of a path, and each has it read by that node alone. One that is drained is no home.
    #[test]
    fn nodes_agree_on_homes() {
        let nodes = peers_named(&["a", "b", "c"]);
        let homes: Vec<_> = ["a", "b", "c"]
            .iter()
            .map(|own| Homes::new(peers_named(&["a", "b", "c"]), own, FetchRule::Always).expect("a node"))
            .collect();
        assert!(Homes::new(nodes, "d", FetchRule::Always).is_none());
        let home = |own: &Homes, path: &str| -> String {
            let turn = own.seek(path.as_bytes(), None, 1);
            let name = |at: usize| own.peers.crew.member(at).name.clone();
            turn.map_or_else(
                || name(own.own),
                |turn| turn.application().settings().node.clone().expect("a node"),
            )
        };
        let mut seen = BTreeSet::new();
        for path in (0..100).map(|number| format!("/{number}")) {
            let of_each: BTreeSet<_> = homes.iter().map(|own| home(own, &path)).collect();
            assert_eq!(of_each.len(), 1, "{path}: {of_each:?}");
            seen.extend(of_each);
        }
        assert_eq!(seen.len(), 3);
        let b = homes[0].peers.crew.members().position(|(member, _)| member.name == "b").expect("b");
        homes[0].peers.crew.member(b).record.set_drained(true);
        assert!((0..100).all(|number| home(&homes[0], &format!("/{number}")) != "b"));
    }

    #[test]
    fn what_is_faster_here_is_read_here() {
        let homes = Homes::new(peers_named(&["a", "b"]), "a", FetchRule::IfFaster).expect("a node");
        let fetched = |homes: &Homes| {
            (0..100).filter(|number| homes.seek(format!("/{number}").as_bytes(), None, 1).is_some()).count()
        };
        assert_eq!(fetched(&homes), 0);
        (0..100).for_each(|_| homes.note_read(10_000));
        assert!((30..70).contains(&fetched(&homes)));
        let rehearsed = homes.rehearse(b"/1", 1);
        assert_eq!(rehearsed.is_fetched, rehearsed.home.is_some());
        assert!(rehearsed.read_us > 9_000.0);
        (0..60).for_each(|_| homes.note_failed());
        assert_eq!(fetched(&homes), 0);
    }
}
