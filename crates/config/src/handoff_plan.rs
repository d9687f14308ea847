//! From `[cluster]` to what the process that moves connections is told.

use std::net::IpAddr;
use std::path::PathBuf;

use baton_cluster::local::{AgentSettings, Node};

use super::cluster::ClusterNode;
use super::config::Config;
use super::server::ControlSocket;

impl Config {
    /// What the handoff agent of this host needs to know; `None`: no connection moves to another host, or comes from one.
    pub fn agent_settings(&self) -> Option<AgentSettings> {
        let key = self.cluster.key.clone()?;
        let nodes = if self.has_cluster_routes() { &self.cluster.nodes[..] } else { &[] };
        let settings = AgentSettings {
            nodes: nodes.iter().filter_map(ClusterNode::as_next_hop).collect(),
            listen: self.cluster.listen,
            key,
            revoked: self.cluster.revoked.clone(),
            interfaces: Vec::new(),
        };
        (!settings.nodes.is_empty() || settings.listen.is_some()).then_some(settings)
    }

    /// The socket of that process.
    pub fn agent_socket(&self) -> PathBuf {
        match (&self.cluster.mover_socket, &self.server.control_socket) {
            (Some(path), _) => path.clone(),
            (None, ControlSocket::Path(control)) => {
                // Servers of one folder have control sockets of different names.
                let mut path = control.clone().into_os_string();
                path.push(".mover");
                path.into()
            }
            (None, ControlSocket::Auto | ControlSocket::Off) => USUAL_SOCKET.into(),
        }
    }
}

impl ClusterNode {
    /// How connections get there, if they can.
    fn as_next_hop(&self) -> Option<Node> {
        let agent = self.mover?;
        Some(Node { name: self.name().into_owned(), agent, next_hop: IpAddr::to_canonical(&agent.ip()) })
    }
}

const USUAL_SOCKET: &str = "/run/baton/mover.sock";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_front_end_knows_the_agents_of_its_nodes_and_a_node_listens() {
        let front = "[cluster]\nkey = '/k'\nnodes = ['http://a', { to = 'http://b', mover = '10.0.0.2:7946' }]\n[[site]]\n\
                     [[site.route]]\npath = '/'\ncluster = true\n[server]\ncontrol_socket = '/run/c.sock'\n";
        let config = Config::from_toml(front).unwrap();
        let settings = config.agent_settings().unwrap();
        assert_eq!((settings.nodes.len(), &*settings.nodes[0].name, settings.listen), (1, "b", None));
        assert_eq!(config.agent_socket(), PathBuf::from("/run/c.sock.mover"));
        let node =
            Config::from_toml("[cluster]\nkey = '/k'\nlisten = ':7946'\n[[site]]\nroot = '/'\n").unwrap();
        assert!(node.agent_settings().is_some_and(|settings| settings.nodes.is_empty()));
        let neither = Config::from_toml("[cluster]\nkey = '/k'\n[[site]]\nroot = '/'\n").unwrap();
        assert_eq!((neither.agent_settings(), neither.agent_socket()), (None, PathBuf::from(USUAL_SOCKET)));
    }
}
