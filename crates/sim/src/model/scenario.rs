//! What to simulate: a policy, a cluster, how requests arrive, and what happens to nodes meanwhile.

use std::fmt;
use std::str::FromStr;

use baton_dispatch::{PolicyName, PolicySettings, STANDARD_WEIGHT, WEIGHT_MAX};

use super::NodeProfile;

/// Configuration of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// How front-ends distribute requests.
    pub policy: PolicyName,
    /// Settings of the policy. Its assumptions about the nodes' memory come from the profile.
    pub settings: PolicySettings,
    /// A standard node.
    pub profile: NodeProfile,
    /// The nodes at the beginning, one weight each, in hundredths of a standard node. A node of twice the weight is
    /// twice as fast, and has twice the memory.
    pub weights: Vec<u32>,
    /// The front-ends, which assign requests to nodes.
    pub front_ends: FrontEnds,
    /// Connections that bring several requests, if they do.
    pub kept: Option<Kept>,
    /// When requests come.
    pub arrivals: Arrivals,
    /// What happens to nodes, in the order of time.
    pub changes: Vec<Change>,
    /// How long nodes that join or recover take to get their full share, in microseconds.
    pub slow_start_us: u64,
    /// The share of the requests after which measuring begins, 0 to 1: caches are cold before.
    pub measured_from: f64,
    /// The number of completed requests is kept for each interval of this length, in milliseconds; 0: is not kept.
    pub series_ms: u64,
    /// What random choices start from.
    pub seed: u64,
}

/// The most nodes that a cluster may have.
pub const NODES_MAX: usize = 4096;

impl Scenario {
    /// The published setting: standard nodes of the published kind, one front-end at no cost, as many requests as the
    /// admission limit lets in.
    #[must_use]
    pub fn published(policy: PolicyName, nodes: usize) -> Self {
        Self {
            policy,
            settings: PolicySettings::default(),
            profile: NodeProfile::published(),
            weights: vec![STANDARD_WEIGHT; nodes.min(NODES_MAX)],
            front_ends: FrontEnds::default(),
            kept: None,
            arrivals: Arrivals::Saturating,
            changes: Vec::new(),
            slow_start_us: 10_000_000,
            measured_from: 0.0,
            series_ms: 0,
            seed: 1,
        }
    }
}

/// The front-ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrontEnds {
    /// How many, above 0.
    pub count: usize,
    /// What they share.
    pub sharing: Sharing,
    /// Cost of a request at its front-end, in microseconds; the source assumes 0.
    pub cost_us: f64,
    /// How requests get to nodes, each on a connection of its own, if that costs something in addition.
    pub way: Option<Way>,
}

/// How requests get to nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// Front-ends stand between clients and nodes.
    Relay,
    /// Connections are handed over.
    HandOff,
    /// Whichever is cheaper, by the server's own choice.
    Auto,
}

impl Way {
    /// All, with their names.
    pub const ALL: [(&str, Self); 3] =
        [("relay", Self::Relay), ("handoff", Self::HandOff), ("auto", Self::Auto)];
}

impl FromStr for Way {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found.map(|(_, way)| *way).ok_or_else(|| {
            format!("{text:?} is no way; there are {}", Self::ALL.map(|(name, _)| name).join(", "))
        })
    }
}

impl Default for FrontEnds {
    fn default() -> Self {
        Self { count: 1, sharing: Sharing::Everything, cost_us: 0.0, way: None }
    }
}

/// What front-ends know of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// Nothing: each sees only its own connections and mappings. Each sees a share of a node's weight, so that the
    /// limits of all together stay the same.
    Nothing,
    /// The loads of the nodes, which nodes report with each answer; mappings are separate.
    Loads,
    /// Everything: they decide as one.
    Everything,
}

impl Sharing {
    /// All, with their names.
    pub const ALL: [(&str, Self); 3] =
        [("nothing", Self::Nothing), ("loads", Self::Loads), ("everything", Self::Everything)];
}

impl FromStr for Sharing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found.map(|(_, sharing)| *sharing).ok_or_else(|| {
            format!(
                "front-ends cannot share {text:?}; there are {}",
                Self::ALL.map(|(name, _)| name).join(", ")
            )
        })
    }
}

impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, sharing)| sharing == self).map_or("", |(name, _)| name);
        f.pad(name)
    }
}

/// Connections that bring several requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Requests of a connection, above 0.
    pub requests: u32,
    /// Where those behind the first one are served.
    pub way: KeptWay,
}

/// Where requests behind the first one of a connection are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptWay {
    /// Where the policy says; the front-end relays all of them, and hands nothing over.
    Relay,
    /// At the node that the connection was handed over to.
    Stay,
    /// There, if it has the answer in memory; else the connection goes back, and the front-end hands it over anew.
    Return,
    /// There, if it has the answer in memory; else it gets the answer from the file's home, which follows from names, and
    /// relays it.
    Fetch,
    /// There, if it has the answer in memory, or reads it as fast as it fetches it; else as by `Fetch`.
    Auto,
}

/// When requests come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Requests arrive as soon as the admission limit allows: measures the cluster's capacity.
    Saturating,
    /// From so many clients, each of which asks again as soon as it has its answer.
    Closed {
        /// Above 0. Beyond the admission limit, requests wait at the front-end.
        clients: u32,
    },
    /// At random moments, so many a second on the mean (Poisson).
    Random {
        /// Requests a second, above 0.
        per_s: f64,
    },
}

/// Something that happens to a node in the course of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// After which share of the requests has arrived, 0 to 1.
    pub at: f64,
    /// What.
    pub what: NodeChange,
}

/// What happens to a node. Numbers of nodes count from 0, in the order of joining.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeChange {
    /// The node is gone, with its memory and its connections; front-ends send their requests elsewhere.
    Fail(u32),
    /// The node is back, with empty memory.
    Recover(u32),
    /// The node gets no new requests.
    Drain(u32),
    /// One more node, of this weight in hundredths of a standard node.
    Join(u32),
    /// One of its equal parts fails: of its processors, of each disk's concurrent reads, and of its memory and
    /// contents. Work in progress is finished, and front-ends do not know.
    LosePart {
        /// Its number.
        node: u32,
        /// How many parts it has, from 2 on.
        parts: u32,
    },
    /// The node has all its parts again. The regained memory fills no faster than one of its disks reads.
    RegainParts(u32),
}

impl FromStr for Change {
    type Err = String;

    /// `fail:0@50%`, `recover:0@70%`, `drain:2@10%`, `join@30%`, `join:200@30%`, `lose:0/8@50%`, `regain:0@70%`
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no change; expected like fail:0@50%, recover:0@70%, drain:2@10%, join@30%, join:200@30%, \
                 lose:0/8@50%, regain:0@70%"
            )
        };
        let (what, at) = text.split_once('@').ok_or_else(wrong)?;
        let percent: f64 = at.trim_end_matches('%').parse().map_err(|_| wrong())?;
        if !(0.0..=100.0).contains(&percent) {
            return Err(wrong());
        }
        let (verb, number) = what.split_once(':').unwrap_or((what, ""));
        let node =
            || number.parse::<u32>().ok().filter(|&node| (node as usize) < NODES_MAX).ok_or_else(wrong);
        let what = match (verb, number) {
            ("fail", _) => NodeChange::Fail(node()?),
            ("recover", _) => NodeChange::Recover(node()?),
            ("drain", _) => NodeChange::Drain(node()?),
            ("regain", _) => NodeChange::RegainParts(node()?),
            ("lose", _) => {
                let (node, parts) = number.split_once('/').ok_or_else(wrong)?;
                let node =
                    node.parse().ok().filter(|&node: &u32| (node as usize) < NODES_MAX).ok_or_else(wrong)?;
                let parts = parts.parse().ok().filter(|&parts| parts >= 2).ok_or_else(wrong)?;
                NodeChange::LosePart { node, parts }
            }
            ("join", "") => NodeChange::Join(STANDARD_WEIGHT),
            ("join", weight) => NodeChange::Join(
                weight.parse().ok().filter(|weight| (1..=WEIGHT_MAX).contains(weight)).ok_or_else(wrong)?,
            ),
            _ => return Err(wrong()),
        };
        Ok(Self { at: percent / 100.0, what })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = 100.0 * self.at;
        match self.what {
            NodeChange::Fail(node) => write!(f, "fail:{node}@{percent}%"),
            NodeChange::Recover(node) => write!(f, "recover:{node}@{percent}%"),
            NodeChange::Drain(node) => write!(f, "drain:{node}@{percent}%"),
            NodeChange::Join(weight) => write!(f, "join:{weight}@{percent}%"),
            NodeChange::LosePart { node, parts } => write!(f, "lose:{node}/{parts}@{percent}%"),
            NodeChange::RegainParts(node) => write!(f, "regain:{node}@{percent}%"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_and_refused() {
        for text in
            ["fail:0@50%", "recover:3@70%", "drain:2@12.5%", "join:200@30%", "lose:0/8@1%", "regain:0@2%"]
        {
            assert_eq!(text.parse::<Change>().unwrap().to_string(), text);
        }
        assert_eq!("join@30".parse::<Change>().unwrap().what, NodeChange::Join(STANDARD_WEIGHT));
        for wrong in [
            "fail@50%",
            "fail:x@50%",
            "fail:0",
            "fail:0@150%",
            "explode:0@5%",
            "fail:9999999@1%",
            "join:0@1%",
            "lose:0@1%",
            "lose:0/1@1%",
        ] {
            assert!(wrong.parse::<Change>().is_err(), "{wrong}");
        }
    }
}
