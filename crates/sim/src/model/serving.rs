//! The steps of a request on its node: connection, memory or disk, sending, and the end of the connection.
//!
//! The steps of one request follow one another; those of different requests overlap. Concurrent requests for a file
//! share one read, and the file is kept in memory. A long file is read in blocks; the first request for it asks for
//! the next block when it has sent the last one.

use super::node::{Job, Reading, RequestId, StationId};
use super::outcome::Found;
use super::simulation::Simulation;
use crate::queueing::Work;
use crate::trace::TargetId;

impl Simulation<'_> {
    /// A request has arrived at its node.
    pub(crate) fn establish(&mut self, node: u32, id: RequestId) {
        let profile = &self.nodes[node as usize].profile;
        let ns = profile.cpu_ns(profile.establish_us) + self.active[id as usize].arrival_ns;
        let work = Work { job: Job::Establish(id), ns };
        self.offer(node, StationId::Cpu, work);
    }

    pub(crate) fn handle_done(&mut self, node: u32, job: Job) {
        match job {
            Job::Establish(id) => self.handle_established(node, id),
            Job::Send { request, until } => self.handle_sent(node, request, until),
            Job::Finish(id) => self.handle_finished(id),
            Job::Relay(id) => self.handle_answered(id),
            Job::GiveBack => {}
            Job::Lend { request, loan } => self.handle_lent(request, loan),
            Job::Read(target) => self.handle_read(node, target),
        }
    }

    /// The connection is established: look for the file.
    pub(crate) fn handle_established(&mut self, node: u32, id: RequestId) {
        let request = self.active[id as usize].request;
        let target_id = request.target();
        let target = *self.trace.target(target_id);
        let now_ns = self.now_ns;
        let known = &mut self.nodes[node as usize];
        if target.dynamic || !request.has_body() || target.bytes == 0 {
            return self.finish_sending(node, id);
        }
        if known.cache.touch(target_id, now_ns) {
            if let Some(relay) = &mut self.active[id as usize].relay {
                relay.was_in_memory = true;
            }
            self.measures.handle_found(Found::Hit);
            return self.finish_sending(node, id);
        }
        if let Some(reading) = known.reading.get_mut(&target_id) {
            reading.readers.push(id);
            let blocks_read = reading.blocks_read;
            self.measures.handle_found(Found::SharedMiss);
            return self.send(node, id, blocks_read);
        }
        if self.borrow_file(node, id, target_id) {
            self.measures.handle_found(Found::Lent);
            return;
        }
        self.measures.handle_found(Found::Miss);
        let known = &mut self.nodes[node as usize];
        let blocks = known.profile.blocks(target.bytes);
        known
            .reading
            .insert(target_id, Reading { blocks_read: 0, blocks, readers: vec![id], since_ns: now_ns });
        self.read(node, target_id, 0);
    }

    fn read(&mut self, node: u32, target: TargetId, block: u32) {
        let known = &self.nodes[node as usize];
        let place = known.disk_of(self.trace.rank(target));
        let work = known.read(target, self.trace.target(target).bytes, block);
        self.offer(node, place, work);
    }

    /// A block is in memory: all requests that wait for it send it.
    fn handle_read(&mut self, node: u32, target: TargetId) {
        let now_ns = self.now_ns;
        let known = &mut self.nodes[node as usize];
        let Some(reading) = known.reading.get_mut(&target) else { return };
        reading.blocks_read += 1;
        let blocks_read = reading.blocks_read;
        if blocks_read < reading.blocks {
            // No request joins meanwhile: the list keeps its length.
            for at in 0..reading.readers.len() {
                let reader = self.nodes[node as usize].reading[&target].readers[at];
                self.send(node, reader, blocks_read);
            }
            return;
        }
        let Some(reading) = known.reading.remove(&target) else { return };
        known.fetches.note_read((now_ns - reading.since_ns) / 1_000);
        self.keep(node, target);
        for reader in reading.readers {
            if !self.active[reader as usize].is_sending {
                self.finish_sending(node, reader);
            }
        }
    }

    /// Sends a request the blocks in memory, if there are any and it is not sending already.
    fn send(&mut self, node: u32, id: RequestId, blocks_read: u32) {
        let active = &mut self.active[id as usize];
        if active.is_sending || active.blocks_sent == blocks_read {
            return;
        }
        active.is_sending = true;
        let profile = &self.nodes[node as usize].profile;
        // More of the file follows, so these blocks are full.
        let bytes = u64::from(blocks_read - active.blocks_sent) * u64::from(profile.block_bytes);
        let work =
            Work { job: Job::Send { request: id, until: blocks_read }, ns: profile.transmit_ns(bytes) };
        self.offer(node, StationId::Cpu, work);
    }

    /// The blocks in memory are sent; by now there may be more.
    fn handle_sent(&mut self, node: u32, id: RequestId, until: u32) {
        let active = &mut self.active[id as usize];
        active.is_sending = false;
        active.blocks_sent = until;
        let target = active.request.target();
        let reading = self.nodes[node as usize].reading.get(&target);
        // This request's read has it among its readers; that read may be over, and another one begun.
        match reading.filter(|reading| reading.readers.contains(&id)) {
            None => self.finish_sending(node, id),
            Some(reading) => {
                let (is_first, blocks_read) = (reading.readers.first() == Some(&id), reading.blocks_read);
                if is_first {
                    self.read(node, target, until);
                } else {
                    self.send(node, id, blocks_read);
                }
            }
        }
    }

    /// Sends all that is left and ends the connection.
    pub(crate) fn finish_sending(&mut self, node: u32, id: RequestId) {
        let active = &mut self.active[id as usize];
        active.is_sending = true;
        let (request, blocks_sent) = (active.request, active.blocks_sent);
        let was_lent = active.loan.take().is_some();
        let target = self.trace.target(request.target());
        let profile = &self.nodes[node as usize].profile;
        let mut ns = profile.cpu_ns(profile.teardown_us);
        if request.has_body() {
            let sent = u64::from(blocks_sent) * u64::from(profile.block_bytes);
            ns += profile.transmit_ns(target.bytes - sent);
        }
        if target.dynamic {
            ns += profile.cpu_ns(profile.dynamic_us);
        }
        if was_lent {
            // Taking a file from another node costs what sending it does.
            ns += profile.transmit_ns(target.bytes);
        }
        self.offer(node, StationId::Cpu, Work { job: Job::Finish(id), ns });
    }
}
