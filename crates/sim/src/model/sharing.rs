//! Nodes that share their memory (WRR/GMS, section 3.3 of the source, after Feeley and others, 1995).
//!
//! A node takes a file that it does not have from another node's memory. Finding that node and choosing victims costs
//! nothing, as the source assumes; the transfer costs both nodes as much as sending the file to a client. An evicted
//! file that is the cluster's only copy replaces the oldest file of all nodes, if that is older.

use baton_dispatch::PolicyName;

use super::cache::EvictedFile;
use super::node::{Job, RequestId, StationId};
use super::simulation::{Loan, Simulation};
use crate::queueing::Work;
use crate::trace::TargetId;

impl Simulation<'_> {
    /// Asks another node for a file, if memory is shared and one has it.
    pub(crate) fn borrow_file(&mut self, node: u32, id: RequestId, target: TargetId) -> bool {
        if self.policy() != PolicyName::WrrGms {
            return false;
        }
        let count = self.nodes.len() as u32;
        // Each node asks its neighbours first, so that not all ask the same one.
        let lender = (1..count).map(|step| (node + step) % count).find(|&lender| self.has(lender, target));
        let Some(lender) = lender else { return false };
        self.loans += 1;
        let loan = Loan { lender, number: self.loans };
        self.active[id as usize].loan = Some(loan);
        let profile = &self.nodes[lender as usize].profile;
        let ns = profile.transmit_ns(self.trace.target(target).bytes);
        self.offer(lender, StationId::Cpu, Work { job: Job::Lend { request: id, loan: loan.number }, ns });
        true
    }

    /// The file has been sent to the node of the request.
    pub(crate) fn handle_lent(&mut self, id: RequestId, loan: u64) {
        let active = self.active[id as usize];
        // The node may have failed meanwhile, and the slot be free or another request's.
        if let Some(node) = active.node
            && active.loan.is_some_and(|known| known.number == loan)
        {
            self.keep(node, active.request.target());
            self.finish_sending(node, id);
        }
    }

    /// Requests that wait for a file from a failed node look for it again.
    pub(crate) fn handle_lender_failed(&mut self, lender: u32) {
        for id in 0..self.active.len() as RequestId {
            let active = &mut self.active[id as usize];
            if active.loan.is_some_and(|loan| loan.lender == lender)
                && let Some(node) = active.node
            {
                active.loan = None;
                self.handle_established(node, id);
            }
        }
    }

    /// Keeps a file that is now in a node's memory, if there is room.
    pub(crate) fn keep(&mut self, node: u32, target: TargetId) {
        let bytes = self.trace.target(target).bytes;
        let now_ns = self.now_ns;
        let mut evicted = Vec::new();
        self.nodes[node as usize].handle_kept(bytes);
        self.nodes[node as usize].cache.insert(target, bytes, now_ns, |file| evicted.push(file));
        if self.policy() == PolicyName::WrrGms {
            for file in evicted {
                self.pass_on(node, file);
            }
        }
    }

    /// Gives a file that one node has no room for to the node with the oldest of all.
    fn pass_on(&mut self, from: u32, file: EvictedFile) {
        let others = || (0..self.nodes.len() as u32).filter(|&node| node != from);
        let is_kept = others().any(|node| self.has(node, file.target));
        for node in &mut self.nodes {
            node.cache.raise_inflation(file.value);
        }
        if is_kept {
            return;
        }
        let mut oldest: Option<(u64, u32)> = None;
        for node in (0..self.nodes.len() as u32).filter(|&node| node != from) {
            let known = &mut self.nodes[node as usize];
            let value = if known.is_up { known.cache.least_value() } else { None };
            oldest = oldest.into_iter().chain(value.map(|value| (value, node))).min();
        }
        if let Some((value, node)) = oldest
            && value < file.value
        {
            self.nodes[node as usize].cache.insert_valued(file);
        }
    }

    pub(crate) fn has(&self, node: u32, target: TargetId) -> bool {
        self.nodes[node as usize].cache.contains(target)
    }
}
