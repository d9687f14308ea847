//! Nodes of the cluster that the configuration does not list: those that register in etcd, and each address of a host.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use baton_membership::{DnsNodes, Etcd, EtcdUser, Member, MembersSettings, Register, Source, is_name};
use baton_report::OperatorError;
use baton_upstream::PEERS_MAX;

use super::application::Target;
use super::cluster::{Cluster, ClusterNode};
use super::cluster_etcd::ClusterEtcd;
use super::config::Config;
use super::origin_url::OriginUrl;

impl Cluster {
    /// Whether nodes may come that are not listed.
    pub fn has_other_sources(&self) -> bool {
        self.etcd.is_some() || self.nodes.iter().any(|node| node.each_address)
    }

    /// The nodes that are listed, and those that other sources know; why some of these do not count.
    pub fn with_members(&self, members: &[Member]) -> (Vec<ClusterNode>, Vec<String>) {
        let mut nodes: Vec<_> = self.nodes.iter().filter(|node| !node.each_address).cloned().collect();
        let mut refused = Vec::new();
        for member in members {
            let node = match node_of(member) {
                // Without a key no connection is handed over.
                Ok(node) => ClusterNode { mover: node.mover.filter(|_| self.key.is_some()), ..node },
                Err(why) => {
                    refused.push(format!("node {}: {why}", member.name));
                    continue;
                }
            };
            let is_known = |known: &ClusterNode| known.to == node.to || known.name() == node.name();
            if nodes.iter().any(is_known) {
                continue;
            }
            if nodes.len() >= PEERS_MAX {
                refused.push(format!("node {}: there are {PEERS_MAX} already", member.name));
                continue;
            }
            nodes.push(node);
        }
        (nodes, refused)
    }
}

/// Whether the address is one: a handoff agent anywhere is nowhere.
fn is_specified(mover: &SocketAddr) -> bool {
    !mover.ip().is_unspecified()
}

fn node_of(member: &Member) -> Result<ClusterNode, String> {
    let to = OriginUrl::parse(&member.to, Path::new("/"))?;
    if to.path.is_some() || !is_name(&member.name) {
        return Err("neither its name nor its URL can be that of a node".into());
    }
    Ok(ClusterNode {
        to,
        name: Some(member.name.clone()),
        weight: u64::from(member.weight.clamp(1, 100)),
        public: member.public.clone(),
        mover: member.mover.as_deref().and_then(|mover| mover.parse().ok()).filter(is_specified),
        // A node of DNS is one address, and is not looked up.
        each_address: false,
    })
}

impl Config {
    /// What the process that knows other nodes is told; `None`: there are none.
    ///
    /// # Errors
    /// If the password cannot be read.
    pub fn members_settings(&self) -> Result<Option<MembersSettings>, OperatorError> {
        let cluster = &self.cluster;
        if !cluster.has_other_sources() {
            return Ok(None);
        }
        Ok(Some(MembersSettings {
            etcd: cluster.etcd.as_ref().map(|etcd| etcd.settings(self.has_cluster_routes())).transpose()?,
            dns: cluster.nodes.iter().filter(|node| node.each_address).filter_map(dns_nodes).collect(),
            dns_servers: self.server.dns_servers.clone(),
            state_file: cluster.state_folder.join("members.json"),
        }))
    }
}

impl ClusterEtcd {
    fn settings(&self, is_front_end: bool) -> Result<Etcd, OperatorError> {
        let password = self.password_file.as_ref().map(|path| {
            let file = path.display();
            fs::read_to_string(path)
                .map_err(|error| OperatorError::of(format_args!("read etcd's password from {file}"), &error))
        });
        let password = password.transpose()?.unwrap_or_default();
        let login = |user: &String| EtcdUser { user: user.clone(), password: password.trim_end().to_owned() };
        Ok(Etcd {
            endpoints: self.endpoints.clone(),
            prefix: self.prefix.clone(),
            ttl_s: self.ttl_s,
            hold_s: self.hold_s,
            ca: self.ca.clone(),
            login: self.user.as_ref().map(login),
            register: self.register.as_ref().map(|register| Register {
                name: register.name.clone().unwrap_or_else(|| register.to.authority()),
                to: register.to.to_string(),
                weight: register.weight as u32,
                mover: register.mover.map(|mover| mover.to_string()),
                public: register.public.clone(),
                // Requests to a front-end go on, whether it is a drained node besides or not.
                tells_left: register.mover.is_some() || !is_front_end,
            }),
        })
    }
}

fn dns_nodes(node: &ClusterNode) -> Option<DnsNodes> {
    match &node.to.target {
        Target::Host(host, port) => Some(DnsNodes {
            host: host.clone(),
            scheme: if node.to.tls { "https" } else { "http" }.into(),
            port: *port,
            weight: node.weight as u32,
        }),
        Target::Tcp(_) | Target::Unix(_) => None,
    }
}

/// The word for where a node is known from.
pub fn source_word(source: Option<Source>) -> &'static str {
    match source {
        None => "static",
        Some(Source::Etcd) => "etcd",
        Some(Source::Dns) => "dns",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(cluster: &str) -> Result<Config, String> {
        let text = format!("[cluster]\n{cluster}\n[[site]]\n[[site.route]]\npath = '/'\ncluster = true\n");
        Config::from_toml(&text).map_err(|error| error.render(false))
    }

    fn member(name: &str, to: &str) -> Member {
        Member {
            name: name.into(),
            to: to.into(),
            weight: 3,
            drained: false,
            leaving: false,
            held: false,
            mover: None,
            public: None,
            epoch: 0,
            tells_left: false,
            left: None,
            source: Source::Etcd,
            host: None,
        }
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        for (cluster, words) in [
            ("etcd = {}", "is missing"),
            ("etcd = { endpoints = [] }", "without an endpoint"),
            ("etcd = { endpoints = ['10.0.0.1:2379'] }", "is not the URL of a member of etcd"),
            ("etcd = { endpoints = ['http://a/b'] }", "no path"),
            ("etcd = { endpoints = ['http://a'], ttl_s = 1 }", "from 2 to"),
            ("etcd = { endpoints = ['http://a'], user = 'u' }", "`user` without `password_file`"),
            ("etcd = { endpoints = ['http://a'], register = {} }", "is missing"),
            ("nodes = [{ to = 'http://10.0.0.1', each_address = true }]", "is an address already"),
        ] {
            let said = checked(cluster).expect_err(cluster);
            assert!(said.contains(words), "{cluster}: {said}");
        }
    }

    #[test]
    fn listed_nodes_count_more_than_others() {
        let config = checked(
            "nodes = ['http://a', { to = 'http://many:81', weight = 2, each_address = true }]\n\
             etcd = { endpoints = ['http://e'], register = { to = 'http://me:82' } }",
        )
        .unwrap();
        let settings = config.members_settings().unwrap().unwrap();
        assert_eq!((&*settings.dns[0].host, settings.dns[0].port, settings.dns[0].weight), ("many", 81, 2));
        assert_eq!(settings.etcd.unwrap().register.unwrap().name, "me:82");
        let members =
            [member("a", "http://x"), member("b", "http://a"), member("c", "http://c"), member("d", "?")];
        let (nodes, refused) = config.cluster.with_members(&members);
        let names: Vec<_> = nodes.iter().map(|node| node.name().into_owned()).collect();
        assert_eq!((names, nodes[1].weight), (vec!["a".to_owned(), "c".into()], 3));
        assert!(refused.len() == 1 && refused[0].contains("node d"), "{refused:?}");
        let many: Vec<_> = (0..70).map(|at| member(&format!("n{at}"), &format!("http://n{at}"))).collect();
        let (nodes, refused) = config.cluster.with_members(&many);
        assert_eq!((nodes.len(), refused.len()), (PEERS_MAX, 7));
        assert_eq!(checked("nodes = ['http://a']").unwrap().members_settings(), Ok(None));
    }
}
