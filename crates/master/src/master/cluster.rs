//! The nodes of the cluster: what the process that knows them tells, and what operators want of them.

use std::time::Instant;

use baton_cluster::local::Drain;
use baton_membership::Order;
use baton_report::log;
use serde_json::json;

use super::Master;
use crate::control::{Answer, ClusterCommand, RouteQuestion, RouteTopic};
use crate::known_drain::{KnownDrain, LeftOf};
use crate::management::Requester;
use crate::members::Wanted;
use crate::phase::Phase;
use crate::reloads::Subject;

impl Master {
    /// Whether the process that knows other nodes is to run.
    pub(super) fn members_wanted(&self) -> Wanted {
        match self.phase {
            _ if self.upgrade.successor_serves() => Wanted::No,
            Phase::Starting | Phase::Withdrawn => Wanted::No,
            Phase::Ending(_) if self.workers.is_empty() => Wanted::Ended,
            Phase::Serving | Phase::Ending(_) => Wanted::Yes,
        }
    }

    /// When [`look_at_members`](Self::look_at_members) is due.
    pub(super) fn members_due(&self) -> Option<Instant> {
        self.members.report_due().filter(|_| self.may_begin_reload())
    }

    /// Takes over what the process has told: orders at once, other nodes by a reload of them.
    pub(super) fn look_at_members(&mut self, now: Instant) {
        if !self.members.take_report_due() {
            return;
        }
        self.follow_orders(now);
        let mut cluster = self.config.cluster.clone();
        cluster.nodes = self.members.listed().to_vec();
        if self.members.merged(&cluster) != self.config.cluster.nodes {
            let config = self.config.clone();
            self.begin_reload(Subject::Nodes, Ok((config, Vec::new())), Vec::new(), now);
        }
    }

    /// Lets nodes get no requests that are drained, or about to end. If it is this host's, connections go back to front-ends.
    pub(super) fn follow_orders(&mut self, now: Instant) {
        let mut out = self.members.out();
        out.extend(self.handoff_agent.drained());
        self.origins.set_ordered(&self.config, out);
        self.handoff_agent.follow_drains(self.members.is_own_drained(), &self.workers);
        self.tell_left(now);
    }

    /// Lets etcd know what is left of this host's node, if it is drained there.
    pub(super) fn tell_left(&mut self, now: Instant) {
        let requests = self.members.tells_requests().then(|| self.all_figures().requests_in_flight());
        self.members.tell_left(requests.or(self.handoff_agent.left()), now);
    }

    /// What is known of nodes that are drained: from the members of the cluster, and from etcd.
    pub(super) fn drains(&self) -> Vec<KnownDrain> {
        let told = |word: &Drain| KnownDrain { word: word.clone(), counts: LeftOf::Connections };
        self.handoff_agent.drains().iter().map(told).chain(self.members.drains()).collect()
    }

    /// The process has sent messages.
    pub(super) fn handle_members(&mut self, now: Instant) {
        for (requester, order, error) in self.members.handle_messages(now) {
            let answer = match error {
                None => {
                    log::notice(format_args!("ordered of node {}: {}", order.name, words(&order)));
                    let reports = self.members.member(&order.name).is_some_and(|node| node.tells_left);
                    Answer::Ok(
                        json!({ "node": order.name, "ordered": words(&order), "by": "etcd", "reports": reports }),
                    )
                }
                Some(why) => Answer::error(why),
            };
            self.endpoints.answer([requester], &answer, now);
        }
    }

    /// Its orders are lost.
    pub(super) fn handle_lost_orders(&mut self, requesters: Vec<Requester>, now: Instant) {
        let why = "the process that asks etcd has ended: look at `baton ctl cluster` and order again";
        self.endpoints.answer(requesters, &Answer::error(why), now);
    }

    /// Does what an operator wants of the cluster.
    pub(super) fn handle_cluster(&mut self, command: ClusterCommand, requester: Requester, now: Instant) {
        let result = match command {
            ClusterCommand::Why(asked) => {
                return self.ask_of_route(RouteTopic::Node, asked, requester, now);
            }
            ClusterCommand::Order { node, drained, weight } => {
                let order = Order { name: node, drained, weight };
                match self.source_of(&order.name) {
                    Ok(Some(baton_membership::Source::Etcd)) => self.members.order(requester, order),
                    source => {
                        let answer = self.order_members(&order, source.map(|_| ()));
                        return self.endpoints.answer([requester], &answer, now);
                    }
                }
            }
        };
        if let Err(why) = result {
            self.endpoints.answer([requester], &Answer::error(why), now);
        }
    }

    /// Has a worker say something of a request.
    pub(super) fn ask_of_route(
        &mut self,
        topic: RouteTopic,
        asked: RouteQuestion,
        requester: Requester,
        now: Instant,
    ) {
        if let Err(why) = self.route_questions.ask(topic, asked, requester, &self.workers) {
            self.endpoints.answer([requester], &Answer::error(why), now);
        }
    }

    /// Where a node is known from; `None`: from the configuration.
    fn source_of(&self, name: &str) -> Result<Option<baton_membership::Source>, String> {
        let nodes = &self.config.cluster.nodes;
        if !nodes.iter().any(|node| node.name() == name) {
            let names: Vec<_> = nodes.iter().map(|node| node.name()).collect();
            return Err(match names.is_empty() {
                true => format!("{name} is not a node: the cluster has none"),
                false => format!("{name} is not a node\n  nodes: {}", names.join(", ")),
            });
        }
        Ok(self.members.member(name).map(|member| member.source))
    }

    /// A node that is not in etcd: all members follow, if there is an agent that tells them. `is_known`: whether it is a node of
    /// this server. On other nodes none is, and members know.
    fn order_members(&mut self, order: &Order, is_known: Result<(), String>) -> Answer {
        let knows_nodes = !self.config.cluster.nodes.is_empty();
        let told = match (order.drained, is_known.is_ok() || !knows_nodes) {
            (Some(is_drained), true) => self.handoff_agent.drain(&order.name, is_drained),
            _ => Ok(false),
        };
        match (told, is_known) {
            (Ok(false), Ok(())) => self.order_here(order),
            (Ok(false), Err(why)) | (Err(why), _) => Answer::error(why),
            (Ok(true), _) => {
                if order.drained == Some(false) && knows_nodes {
                    // It may have been drained while there was no agent.
                    self.order_here(order);
                }
                Answer::Ok(json!({ "node": order.name, "ordered": words(order), "by": "members" }))
            }
        }
    }

    /// Only this server follows.
    fn order_here(&mut self, order: &Order) -> Answer {
        let Some(is_drained) = order.drained else {
            return Answer::error(format!(
                "the weight of {} is in the configuration: change it there, and reload",
                order.name
            ));
        };
        let node = self.config.cluster.nodes.iter().find(|node| node.name() == order.name);
        let Some(url) = node.map(|node| node.to.server()) else { return Answer::error("no such node") };
        self.origins
            .set_drained(&self.config, &url, is_drained)
            .map(|_| json!({ "node": order.name, "ordered": words(order), "by": "this server" }))
            .into()
    }
}

/// What is ordered.
fn words(order: &Order) -> String {
    let drained =
        order.drained.map(|is_drained| if is_drained { "drained" } else { "not drained" }.to_owned());
    let weight = order.weight.map(|weight| format!("weight {weight}"));
    drained.into_iter().chain(weight).collect::<Vec<_>>().join(", ")
}
