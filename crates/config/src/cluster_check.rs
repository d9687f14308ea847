//! What `[cluster]` and the routes with `cluster` say together.

use baton_site::plan::ClusterWay;

use super::application::Target;
use super::check::{Conflicts, of_site};
use super::cluster::Kept;
use super::error::Complaint;
use super::raw::Step;

impl Conflicts<'_> {
    /// Routes to a cluster that is none, and ways that lead to no node.
    pub(super) fn cluster(&mut self) {
        let nodes = [Step::Key("cluster"), Step::Key("nodes")];
        self.thresholds();
        self.agents();
        self.members();
        self.homes();
        if !self.is_sound(&nodes) {
            return;
        }
        let (config, cluster) = (self.config, &self.config.cluster);
        let has_agent = cluster.nodes.iter().any(|node| node.mover.is_some());
        let has_public = cluster.nodes.iter().any(|node| node.public.is_some());
        for (site, one) in config.sites.iter().enumerate() {
            for (index, route) in one.routes.iter().enumerate() {
                let Some(settings) = &route.settings.cluster else { continue };
                let place =
                    [&of_site(site, "route")[..], &[Step::Index(index), Step::Key("cluster")]].concat();
                if !self.is_sound(&place) {
                    continue;
                }
                if cluster.nodes.is_empty() && !cluster.has_other_sources() {
                    let complaint = Complaint::new("a route to a cluster without nodes");
                    let complaint = complaint.at(self.raw.span(&place), "there is no node to answer");
                    let help = "say which there are: `nodes = [\"http://10.0.0.11\", …]` in [cluster]";
                    self.found.push(complaint.help(help));
                } else if settings.way.unwrap_or(cluster.way) == ClusterWay::HandOff
                    && !(has_agent || cluster.has_other_sources())
                {
                    let complaint =
                        Complaint::new("connections are to be handed over to nodes without handoff agents");
                    let complaint = complaint.at(self.raw.span(&place), "by this way");
                    let help =
                        "say where they are: `{ to = \"http://10.0.0.11\", mover = \"10.0.0.11:7946\" }`";
                    self.found.push(complaint.help(help));
                } else if settings.way.unwrap_or(cluster.way) == ClusterWay::Redirect
                    && !(has_public || cluster.has_other_sources())
                {
                    let complaint =
                        Complaint::new("clients are to be sent to nodes that have no URL for them");
                    let complaint = complaint.at(self.raw.span(&place), "by this way");
                    let help = "give nodes a `public` URL: `{ to = \"http://10.0.0.11\", public = \"https://a.example.org\" }`";
                    self.found.push(complaint.help(help));
                }
            }
        }
    }

    /// Handoff agents without the key by which they know each other, and nodes whose handoff agent could be anywhere.
    fn agents(&mut self) {
        let cluster = &self.config.cluster;
        let listen = [Step::Key("cluster"), Step::Key("listen")];
        if cluster.key.is_none() && cluster.listen.is_some() && self.is_sound(&listen) {
            let complaint =
                Complaint::new("connections are taken from other hosts without a key to know them by")
                    .at(self.raw.span(&listen), "any host could send some");
            let help = "`baton cluster key FILE` makes a key; copy the file to all members and name it: `key = \"FILE\"`";
            self.found.push(complaint.help(help));
        }
        for (index, node) in cluster.nodes.iter().enumerate() {
            let place = [Step::Key("cluster"), Step::Key("nodes"), Step::Index(index), Step::Key("mover")];
            let Some(mover) = node.mover.filter(|_| self.is_sound(&place)) else { continue };
            let complaint = if mover.ip().is_unspecified() {
                Complaint::new("the handoff agent of a node has no address")
                    .at(self.raw.span(&place), "expected the node's")
            } else if cluster.key.is_none() {
                Complaint::new("connections are to be handed over without a key")
                    .at(self.raw.span(&place), "this handoff agent would not know us")
                    .help("`baton cluster key FILE` makes a key; copy the file to all members and name it: `key = \"FILE\"`")
            } else {
                continue;
            };
            self.found.push(complaint);
        }
    }

    /// Files that are to be fetched from homes that are not known.
    fn homes(&mut self) {
        let (cluster, kept) = (&self.config.cluster, [Step::Key("cluster"), Step::Key("kept")]);
        let may_come = cluster.etcd.as_ref().is_some_and(|etcd| etcd.register.is_some());
        if cluster.kept != Kept::Fetch || cluster.fetch_rule().is_some() || may_come || !self.is_sound(&kept)
        {
            return;
        }
        let complaint = Complaint::new("files are to be fetched from nodes that are not known");
        let complaint = complaint.at(self.raw.span(&kept), "this host is to be one of several nodes");
        let help =
            "list all nodes in `nodes`, and let this one's `mover` be its own `listen`: `10.0.0.11:7946`";
        self.found.push(complaint.help(help));
    }

    /// What etcd cannot be asked, and what has no addresses.
    fn members(&mut self) {
        let place = [Step::Key("cluster"), Step::Key("etcd")];
        if let Some(etcd) = self.config.cluster.etcd.as_ref().filter(|_| self.is_sound(&place)) {
            let problem = match (etcd.endpoints.is_empty(), &etcd.user, &etcd.password_file) {
                (true, ..) => Some("`cluster.etcd` without an endpoint"),
                (_, Some(_), None) => Some("`user` without `password_file`"),
                (_, None, Some(_)) => Some("`password_file` without `user`"),
                _ => None,
            };
            if let Some(problem) = problem {
                let complaint =
                    Complaint::new(problem).at(self.raw.span(&place), "cannot be asked like this");
                self.found.push(complaint);
            }
        }
        for (index, node) in self.config.cluster.nodes.iter().enumerate() {
            if node.each_address && !matches!(node.to.target, Target::Host(..)) {
                let place = [Step::Key("cluster"), Step::Key("nodes"), Step::Index(index)];
                let complaint = Complaint::new("`each_address` of a node that has no host name");
                self.found.push(complaint.at(self.raw.span(&place), "is an address already"));
            }
        }
    }

    fn thresholds(&mut self) {
        let [low, high] = ["t_low", "t_high"].map(|key| [Step::Key("cluster"), Step::Key(key)]);
        let (t_low, t_high) = self.config.cluster.thresholds();
        if t_low >= t_high && self.is_sound(&low) && self.is_sound(&high) {
            let complaint = Complaint::new("`cluster.t_low` is not less than `cluster.t_high`")
                .at(self.raw.span(&low), format!("a node has room below {}", t_low))
                .at(self.raw.span(&high), format!("and is busy above {}", t_high));
            self.found.push(complaint);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn checked(cluster: &str, route: &str) -> Result<Config, String> {
        let text = format!("[cluster]\n{cluster}\n[[site]]\n[[site.route]]\npath = '/'\n{route}\n");
        Config::from_toml(&text).map_err(|error| error.render(false))
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        let nodes = "nodes = ['http://a', 'http://b']";
        for (cluster, route, words) in [
            ("", "cluster = true", "without nodes"),
            (nodes, "cluster = 'yes'", "expected true or false"),
            (nodes, "cluster = true\nproxy = 'http://c'", "either `cluster` or `proxy`"),
            (nodes, "cluster = { way = 'redirect' }", "give nodes a `public` URL"),
            (nodes, "cluster = { way = 'relai' }", "did you mean `relay`"),
            (nodes, "cluster = { key = 'paht' }", "did you mean `path`"),
            (nodes, "cluster = { key = 'header' }", "the name of a field"),
            (nodes, "cluster = { key = 'body-prefix:1m' }", "1 to 65536"),
            (nodes, "cluster = { key = 'json:model' }", "RFC 6901"),
            ("nodes = ['http://a', 'http://a']", "cluster = true", "give it a `weight`"),
            (
                "nodes = ['http://a', { to = 'http://b', name = 'a' }]",
                "cluster = true",
                "two nodes of one name",
            ),
            ("nodes = ['http://a/b']", "cluster = true", "is not the URL of a node"),
            ("nodes = [{ to = 'http://a', name = 'a b' }]", "cluster = true", "is not a name"),
            (
                "nodes = [{ to = 'http://a', public = 'a.example.org' }]",
                "cluster = true",
                "is not a URL of a node",
            ),
            (
                "nodes = ['http://a']\nrelay = { to = 'http://b' }",
                "cluster = true",
                "said by `cluster.nodes`",
            ),
            ("nodes = ['http://a']\nrelay = { host = 'origin' }", "cluster = true", "which of the nodes"),
            ("nodes = ['http://a']\nrelay = { queue = 1 }", "cluster = true", "unknown key `queue`"),
            (nodes, "cluster = { way = 'handoff' }", "nodes without handoff agents"),
            ("nodes = ['http://a']\nlisten = ':7946'", "cluster = true", "without a key"),
            ("nodes = [{ to = 'http://a', mover = '10.0.0.1:7946' }]", "cluster = true", "without a key"),
            ("nodes = [{ to = 'http://a', mover = ':1' }]\nkey = '/k'", "cluster = true", "has no address"),
            (
                "nodes = [{ to = 'http://a', mover = '10.0.0.1' }]",
                "cluster = true",
                "an IP address with a port",
            ),
            ("nodes = ['http://a']\nt_low = 9\nt_high = 9", "cluster = true", "is not less than"),
            ("nodes = ['http://a']\nt_high = 'high'", "cluster = true", "cannot be a string"),
            (&format!("{nodes}\nkept = 'fetch'"), "cluster = true", "nodes that are not known"),
            ("nodes = ['http://a']\npolicy = 'lard-x'", "cluster = true", "did you mean `lard-"),
        ] {
            let said = checked(cluster, route).expect_err(cluster);
            assert!(said.contains(words), "{cluster} {route}: {said}");
        }
    }

    #[test]
    fn a_cluster_is_a_proxy_to_its_nodes() {
        let config = checked(
            "nodes = ['http://a', { to = 'http://b:81', weight = 2 }]\nrelay = { queue_max = 7 }",
            "cluster = true",
        )
        .unwrap();
        let proxy = config.proxy_of(&config.sites[0].routes[0]).unwrap();
        assert_eq!((proxy.to.len(), proxy.to[1].weight, proxy.queue_max), (2, 2, 7));
        let names: Vec<_> = config.cluster.nodes.iter().map(|node| node.name().into_owned()).collect();
        assert_eq!(names, ["a", "b:81"]);
        assert!(checked("", "root = '/'\ncluster = false").is_ok_and(|config| !config.has_cluster_routes()));
    }
}
