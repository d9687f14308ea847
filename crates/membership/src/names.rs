//! Nodes that DNS knows: each address of a host is one.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use baton_dns::{Name, Names};
use baton_report::OperatorError;

use crate::settings::{DnsNodes, MembersSettings};
use crate::view::{Member, Source};

/// The hosts that are looked up.
#[derive(Debug)]
pub(crate) struct Hosts {
    hosts: Vec<Host>,
    /// Looks them up as long as it is held.
    _names: Names,
}

#[derive(Debug)]
struct Host {
    nodes: DnsNodes,
    name: Arc<Name>,
    /// Its nodes: those that were restored, until it was found.
    members: Vec<Member>,
    has_answered: bool,
}

impl Hosts {
    /// Looks the hosts up from now on. `restored`: their last nodes.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn new(settings: &MembersSettings, restored: &[Member]) -> Result<Self, OperatorError> {
        let names = Names::default();
        names.ask(&settings.dns_servers);
        let host = |nodes: &DnsNodes| Host {
            name: names.watch(&nodes.host),
            members: restored.iter().filter(|member| is_of(member, nodes)).cloned().collect(),
            nodes: nodes.clone(),
            has_answered: false,
        };
        let hosts = settings.dns.iter().map(host).collect();
        // The first answers are not awaited: etcd has nodes, too.
        names.begin(Duration::ZERO).map_err(|error| OperatorError::of("start a thread for DNS", &error))?;
        Ok(Self { hosts, _names: names })
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// The nodes, as DNS has them now.
    pub(crate) fn members(&mut self) -> Vec<Member> {
        for host in &mut self.hosts {
            let addresses = host.name.addresses();
            host.has_answered |= !addresses.is_empty();
            // A name that is gone for long has no nodes any more; one that was never found may have, as DNS may be away.
            if host.has_answered {
                host.members = addresses.iter().map(|address| member(&host.nodes, *address)).collect();
            }
        }
        let mut all: Vec<Member> = Vec::new();
        for member in self.hosts.iter().flat_map(|host| &host.members) {
            if all.iter().all(|known| known.name != member.name) {
                all.push(member.clone());
            }
        }
        all
    }
}

fn member(nodes: &DnsNodes, address: IpAddr) -> Member {
    let address = SocketAddr::new(address, nodes.port);
    Member {
        name: address.to_string(),
        to: format!("{}://{address}", nodes.scheme),
        weight: nodes.weight,
        drained: false,
        leaving: false,
        held: false,
        mover: None,
        public: None,
        epoch: 0,
        tells_left: false,
        left: None,
        source: Source::Dns,
        host: Some(nodes.host.clone()),
    }
}

fn is_of(member: &Member, nodes: &DnsNodes) -> bool {
    member.host.as_deref() == Some(&*nodes.host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(hosts: &[&str]) -> MembersSettings {
        let nodes =
            |host: &&str| DnsNodes { host: (*host).into(), scheme: "http".into(), port: 81, weight: 2 };
        MembersSettings {
            etcd: None,
            dns: hosts.iter().map(nodes).collect(),
            dns_servers: Vec::new(),
            state_file: "/nonexistent".into(),
        }
    }

    fn to(hosts: &mut Hosts) -> Vec<String> {
        hosts.members().into_iter().map(|member| member.to).collect()
    }

    #[test]
    fn each_address_is_a_node_and_the_last_answer_counts() {
        let mut hosts = Hosts::new(&settings(&["localhost", "LOCALHOST"]), &[]).unwrap();
        while to(&mut hosts).is_empty() {
            std::thread::yield_now();
        }
        let found = hosts.members();
        assert!(found.iter().any(|member| member.to == "http://127.0.0.1:81" && member.weight == 2));
        let names: Vec<_> = found.iter().map(|member| &member.name).collect();
        let mut distinct = names.clone();
        distinct.dedup();
        assert_eq!(names, distinct, "two names of one address are one node");
        // A host that is not found keeps what was known; what another host had is not its own.
        let mut restored = found.clone();
        restored.iter_mut().for_each(|member| member.host = Some("nowhere.invalid".into()));
        let mut hosts = Hosts::new(&settings(&["nowhere.invalid"]), &restored).unwrap();
        assert_eq!(to(&mut hosts).len(), found.len());
        assert!(to(&mut Hosts::new(&settings(&["elsewhere.invalid"]), &restored).unwrap()).is_empty());
    }
}
