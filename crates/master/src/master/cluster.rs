//! The nodes of the cluster: what the process that knows them tells, and what operators want of them.

use std::collections::BTreeSet;
use std::time::Instant;

use baton_config::source_word;
use baton_membership::{Member, Order};
use baton_report::log;
use baton_upstream::{CHOICE_LABELS, Way};
use serde_json::{Map, Value, json};

use super::Master;
use crate::channel::ToWorker;
use crate::control::{Answer, ClusterCommand};
use crate::management::Requester;
use crate::members::Wanted;
use crate::pending::Subject;
use crate::phase::Phase;

impl Master {
    /// Whether the process that knows other nodes is to run.
    pub(super) fn members_wanted(&self) -> Wanted {
        match self.phase {
            _ if self.successor.as_ref().is_some_and(|successor| successor.serves) => Wanted::No,
            Phase::Starting | Phase::Withdrawn => Wanted::No,
            Phase::Ending(_) if self.workers.is_empty() => Wanted::Ended,
            Phase::Serving | Phase::Ending(_) => Wanted::Yes,
        }
    }

    /// When [`look_at_members`](Self::look_at_members) is due.
    pub(super) fn members_due(&self) -> Option<Instant> {
        let may_reload = self.may_reload().is_ok() && self.reload.is_none();
        self.members.news_due().filter(|_| may_reload)
    }

    /// Takes over what the process has told: orders at once, other nodes by a reload of them.
    pub(super) fn look_at_members(&mut self, now: Instant) {
        if !self.members.take_news() {
            return;
        }
        self.follow_orders();
        let mut cluster = self.config.cluster.clone();
        cluster.nodes.clone_from(&self.listed_nodes);
        if self.members.merged(&cluster) != self.config.cluster.nodes {
            let config = self.config.clone();
            self.begin(Subject::Nodes, Ok((config, Vec::new())), Vec::new(), now);
        }
    }

    /// Lets nodes get no requests that are drained, or about to end.
    pub(super) fn follow_orders(&mut self) {
        let is_out = |member: &&Member| member.drained || member.leaving;
        let out: BTreeSet<_> =
            self.members.members().iter().filter(is_out).map(|one| one.name.clone()).collect();
        self.origins.set_ordered(&self.config, out);
    }

    /// The process has sent messages.
    pub(super) fn handle_members(&mut self, now: Instant) {
        for (requester, order, error) in self.members.handle_messages(now) {
            let answer = match error {
                None => {
                    log::notice(format_args!("ordered of node {}: {}", order.name, words(&order)));
                    Answer::Ok(json!({ "node": order.name, "ordered": words(&order), "by": "etcd" }))
                }
                Some(why) => Answer::error(why),
            };
            self.answer_all([requester], &answer, now);
        }
    }

    /// Its orders are lost.
    pub(super) fn handle_lost_orders(&mut self, requesters: Vec<Requester>, now: Instant) {
        let why = "the process that asks etcd has ended: look at `baton ctl cluster` and order again";
        self.answer_all(requesters, &Answer::error(why), now);
    }

    /// Does what an operator wants of the cluster.
    pub(super) fn handle_cluster(&mut self, command: ClusterCommand, requester: Requester, now: Instant) {
        let result = match command {
            ClusterCommand::Why(url) => self.ask_why(url, requester),
            ClusterCommand::Order { node, drained, weight } => {
                let order = Order { name: node, drained, weight };
                match self.source_of(&order.name) {
                    Err(why) => Err(why),
                    Ok(Some(baton_membership::Source::Etcd)) => self.members.order(requester, order),
                    Ok(_) => {
                        let answer = self.order_here(&order);
                        return self.answer_all([requester], &answer, now);
                    }
                }
            }
        };
        if let Err(why) = result {
            self.answer_all([requester], &Answer::error(why), now);
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
        Ok(self.member(name).map(|member| member.source))
    }

    fn member(&self, name: &str) -> Option<&Member> {
        // A node that is listed, too, is known from there.
        let is_listed = self.listed_nodes.iter().any(|node| !node.each_address && node.name() == name);
        self.members.members().iter().find(|member| member.name == name && !is_listed)
    }

    /// A node that is not in etcd: only this server follows.
    fn order_here(&mut self, order: &Order) -> Answer {
        let Some(is_drained) = order.drained else {
            return Answer::error(format!(
                "the weight of {} is in the configuration: change it there, and reload",
                order.name
            ));
        };
        let node = self.config.cluster.nodes.iter().find(|node| node.name() == order.name);
        let Some(url) = node.map(|node| node.to.server()) else { return Answer::error("no such node") };
        match self.set_drained(&url, is_drained) {
            Answer::Ok(_) => {
                Answer::Ok(json!({ "node": order.name, "ordered": words(order), "by": "this server" }))
            }
            error => error,
        }
    }

    /// Asks a worker where a target goes.
    fn ask_why(&mut self, url: String, requester: Requester) -> Result<(), String> {
        let worker = self.workers.serving().next().ok_or("no worker serves")?;
        self.tickets += 1;
        let message = ToWorker::Why { ticket: self.tickets, url };
        self.workers
            .tell(worker, &message, &[])
            .map_err(|error| format!("cannot ask worker {worker}: {error}"))?;
        self.pending_whys.insert(self.tickets, requester);
        Ok(())
    }

    /// A worker has said where a target goes.
    pub(super) fn handle_why(&mut self, ticket: u64, told: Result<Value, String>, now: Instant) {
        if let Some(requester) = self.pending_whys.remove(&ticket) {
            let answer = told.map_or_else(Answer::Error, Answer::Ok);
            self.answer_all([requester], &answer, now);
        }
    }

    /// The cluster, for the status; `None`: no route leads to one.
    pub(super) fn cluster_report(&self) -> Option<Value> {
        if !self.config.has_cluster_routes() {
            return None;
        }
        let cluster = &self.config.cluster;
        let figures = self.origins.figures(&self.config);
        let nodes = cluster.nodes.iter().filter(|node| !node.each_address).map(|node| {
            let name = node.name();
            let member = self.member(&name);
            let known = figures.iter().find(|one| one.node.as_deref() == Some(&*name));
            let (state, why) =
                known.map_or(("unknown", String::new()), |one| (one.state.word(), one.state.why()));
            let (state, why) = match member {
                Some(member) if member.leaving => ("leaving", "it said so".into()),
                Some(member) if member.drained => ("drained", "by `baton ctl cluster drain`".into()),
                Some(member) if member.held => {
                    let why = "etcd does not have it, nor others: it counts nevertheless".to_owned();
                    (
                        state,
                        if why.is_empty() {
                            why
                        } else {
                            format!("{why} {}", known.map_or_else(String::new, |one| one.state.why()))
                        },
                    )
                }
                _ => (state, why),
            };
            let counts = known.map(|one| one.counts).unwrap_or_default();
            let choices = CHOICE_LABELS.into_iter().zip(counts.choices).filter(|(_, count)| *count > 0);
            let choices: Map<_, _> = choices.map(|(label, count)| (label.to_owned(), count.into())).collect();
            let ways = Way::ALL.into_iter().zip(counts.ways).filter(|(_, count)| *count > 0);
            let connections =
                self.origins.node(&self.config, &name).map(|record| record.connections_at_node());
            let ways: Map<_, _> = ways.map(|(way, count)| (way.word().to_owned(), count.into())).collect();
            json!({
                "name": name,
                "to": node.to.to_string(),
                "source": source_word(member.map(|member| member.source)),
                "state": state,
                "why": why.trim(),
                "held": member.is_some_and(|member| member.held),
                "weight": node.weight,
                "load": counts.in_flight,
                "requests": counts.requests,
                "failures": counts.failures.iter().sum::<u64>(),
                "choices": choices,
                "ways": ways,
                "connections": connections,
            })
        });
        Some(json!({
            "policy": cluster.policy.to_string(),
            "nodes": nodes.collect::<Vec<_>>(),
            "members": self.members.report(),
        }))
    }
}

/// What is ordered.
fn words(order: &Order) -> String {
    let drained =
        order.drained.map(|is_drained| if is_drained { "drained" } else { "not drained" }.to_owned());
    let weight = order.weight.map(|weight| format!("weight {weight}"));
    drained.into_iter().chain(weight).collect::<Vec<_>>().join(", ")
}
