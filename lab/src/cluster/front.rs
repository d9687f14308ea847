//! The front-ends that are compared: ours with each policy and way to the nodes, and those of the distribution.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use baton_dispatch::PolicyName;

use crate::contender::Contender;
use crate::entry::Entry;

/// A front-end in the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Front {
    /// Ours, with this policy, by this way.
    Ours(String, Contender),
    /// `haproxy` or `nginx`.
    Other(String),
}

impl Front {
    /// Ours with each policy, by each way: those that relay first, which are known by their policy alone.
    pub(super) fn ours(policies: &[String], ways: &[String]) -> Result<Vec<Self>> {
        let ways: Vec<Contender> = ways.iter().map(|way| way.parse()).collect::<Result<_>>()?;
        let is_ours = |way: &Contender| matches!(way, Contender::Relay | Contender::Handoff);
        ensure!(ways.iter().all(is_ours), "a policy's ways are relay and handoff");
        let of_way = |way| policies.iter().map(move |policy| Self::Ours(policy.clone(), way));
        Ok(ways.into_iter().flat_map(of_way).collect())
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::Ours(policy, Contender::Relay) => policy.clone(),
            Self::Ours(policy, way) => format!("{policy} {way}"),
            Self::Other(name) => name.clone(),
        }
    }

    /// How it gets to nodes.
    pub(super) fn way(&self) -> Contender {
        match self {
            Self::Ours(_, way) => *way,
            Self::Other(_) => Contender::Relay,
        }
    }

    /// How it is started before these nodes. Files of a member are in the folder.
    pub(super) fn entry(&self, baton: &Path, folder: &Path, nodes: &[SocketAddr]) -> Result<Entry> {
        let entry = match self {
            Self::Ours(policy, way) => {
                // As much as comes, like the others.
                let more = [format!("cluster.policy=\"{policy}\""), "cluster.admission=false".to_owned()];
                way.front(baton, folder, nodes, &more)?
            }
            Self::Other(name) => Some(Entry::other_before_nodes(name, nodes)),
        };
        let name = self.name();
        entry.map(|entry| entry.named(&name)).with_context(|| format!("{name} is not known"))
    }

    /// The policy that the simulator has for it.
    pub(super) fn simulated_as(&self) -> Option<PolicyName> {
        let name = match self {
            Self::Ours(policy, Contender::Relay) => policy,
            Self::Ours(..) => return None,
            Self::Other(name) if name == "haproxy" => "bounded-hash",
            Self::Other(_) => "consistent-hash",
        };
        name.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_compared_by_every_way() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let fronts = Front::ours(&words(&["wrr", "lard-h"]), &words(&["relay", "handoff"])).unwrap();
        let names: Vec<_> = fronts.iter().map(Front::name).collect();
        assert_eq!(names, ["wrr", "lard-h", "wrr handoff", "lard-h handoff"]);
        assert!(Front::ours(&words(&["wrr"]), &words(&["nginx"])).is_err());
    }
}
