//! How many processes there are, and when each is started, replaced or ended.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::replica::{Process, Replica};
use super::{Manager, log};

impl Manager {
    /// Does what is due by the clock, the processes and the loops.
    pub(super) fn scale(&mut self, now: Instant) {
        self.kill_late(now);
        if std::mem::take(&mut self.has_demand) {
            self.grow();
        }
        self.shrink(now);
        for number in 0..self.replicas.len() {
            self.fill(number, now);
            self.replace(number, now);
        }
        if let Some(readiness) = &self.readiness {
            readiness.table.offer_more(self.wanted() < self.replicas.len());
        }
    }

    /// When [`scale`](Self::scale) has something to do if no event comes before.
    pub(super) fn next_change(&self) -> impl Iterator<Item = Instant> {
        let replicas =
            self.replicas.iter().enumerate().filter_map(|(number, replica)| match replica.process {
                _ if !replica.is_wanted => None,
                None => Some(replica.restart.due()),
                // The replacement failed, and the next one has to wait.
                Some(_) if self.wants_replacement(number) => Some(replica.restart.due()),
                // Its turn comes when the previous one has ended.
                Some(_) if self.to_replace.contains(&number) || replica.is_to_change => None,
                Some(process) => Some(process.since + self.lifetime?),
            });
        let surplus = (self.wanted() > self.replicas_min).then_some(self.next_look);
        replicas.chain(surplus).chain(self.readiness.as_ref().and_then(super::Readiness::deadline))
    }

    fn wanted(&self) -> usize {
        self.replicas.iter().filter(|replica| replica.is_wanted).count()
    }

    /// Kills processes that take too long for a request, and probes those left in the middle of one.
    fn kill_late(&mut self, now: Instant) {
        for number in 0..self.replicas.len() {
            let Some(readiness) = &mut self.readiness else { return };
            for process in self.replicas[number].processes().collect::<Vec<_>>() {
                let slot = process.slot;
                if readiness.table.is_unsure(slot) {
                    readiness.ask(slot, now);
                }
                if readiness.table.is_overdue(slot) && readiness.table.lanes() > 1 {
                    // A kill would also end the requests of other clients.
                    readiness.table.excuse(slot);
                    readiness.ask(slot, now);
                } else if readiness.table.is_overdue(slot) || readiness.is_lost(slot, now) {
                    self.kill(number, process, now);
                    break;
                }
            }
        }
    }

    fn kill(&mut self, number: usize, process: Process, now: Instant) {
        log::warning(format_args!(
            "{}[{}] takes too long for a request and is ended",
            self.name, process.pid
        ));
        self.tally.killed += 1;
        let replica = &mut self.replicas[number];
        replica.replacement.take_if(|replacement| replacement.pid == process.pid);
        if replica.process.is_some_and(|current| current.pid == process.pid) {
            replica.process = replica.replacement.take();
            replica.is_to_change = false;
            replica.restart.start_at(now);
        }
        // The configured signal may let the process finish its request first.
        self.dismiss(process, Signal::TERM.as_raw(), now);
    }

    /// Wants more processes while requests wait: at most doubles their number, so that the new ones can show an effect
    /// before still more start.
    fn grow(&mut self) {
        let Some(readiness) = &self.readiness else { return };
        let ready = self.replicas.iter().filter(|replica| replica.is_ready()).count();
        let starting = self.wanted().saturating_sub(ready);
        let waiting = usize::try_from(readiness.table.waiting()).unwrap_or(usize::MAX);
        let more = waiting.min(ready.max(1)).saturating_sub(starting);
        let unwanted =
            self.replicas.iter_mut().filter(|replica| !replica.is_wanted && replica.process.is_none());
        unwanted.take(more).for_each(|replica| replica.is_wanted = true);
    }

    /// Ends processes that have been idle since the last look.
    fn shrink(&mut self, now: Instant) {
        let Some(readiness) = &self.readiness else { return };
        let mut surplus = self.wanted() - self.replicas_min;
        if surplus == 0 {
            self.next_look = now + self.idle;
        }
        if now < self.next_look {
            return;
        }
        self.next_look = now + self.idle;
        let mut leaving = Vec::new();
        // The loops prefer lower numbers.
        let mut replicas: Vec<&mut Replica> =
            self.replicas.iter_mut().filter(|replica| replica.is_wanted).collect();
        replicas.sort_by_key(|replica| std::cmp::Reverse(replica.process.map(|process| process.slot)));
        for replica in replicas {
            let Some(process) = replica.process.as_mut() else {
                // A replica without a process goes first.
                replica.is_wanted = surplus == 0;
                surplus = surplus.saturating_sub(1);
                continue;
            };
            let is_settled = process.is_ready && now.duration_since(process.since) >= self.idle;
            let requests = readiness.table.requests(process.slot);
            let was_used = std::mem::replace(&mut process.requests_seen, requests) != requests;
            if surplus > 0
                && is_settled
                && !was_used
                && replica.replacement.is_none()
                && readiness.table.retire_if_idle(process.slot)
            {
                surplus -= 1;
                replica.is_wanted = false;
                replica.is_to_change = false;
                leaving.extend(replica.process.take());
            }
        }
        for process in leaving {
            self.dismiss(process, self.stop_signal, now);
        }
    }

    /// Starts a process where there is none, or a replacement where it is needed.
    fn fill(&mut self, number: usize, now: Instant) {
        let replica = &self.replicas[number];
        let is_empty = replica.is_wanted && replica.process.is_none();
        if let Some(process) = replica.process
            && self.lifetime.is_some_and(|lifetime| now.duration_since(process.since) >= lifetime)
            && !replica.is_to_change
            && !self.to_replace.contains(&number)
        {
            self.to_replace.push_back(number);
        }
        if self.stopping.is_empty()
            && self.replicas.iter().all(|replica| !replica.is_to_change)
            && self.to_replace.front() == Some(&number)
        {
            self.to_replace.pop_front();
            self.replicas[number].is_to_change = self.replicas[number].process.is_some();
        }
        if !(is_empty || self.wants_replacement(number)) || self.replicas[number].restart.due() > now {
            return;
        }
        let started = self.start(now, number);
        let replica = &mut self.replicas[number];
        match started {
            Ok(None) => replica.restart.start_at(now + SLOT_RETRY),
            Ok(process) if is_empty => replica.process = process,
            Ok(process) => replica.replacement = process,
            Err(error) => log::error(replica.restart.note_failed_start(&self.name, &error, now)),
        }
    }

    fn wants_replacement(&self, number: usize) -> bool {
        let replica = &self.replicas[number];
        let Some(process) = replica.process.filter(|_| replica.replacement.is_none()) else { return false };
        replica.is_to_change
            || self.readiness.as_ref().is_some_and(|readiness| readiness.table.is_almost_spent(process.slot))
    }

    /// Shows the loops which processes are ready, and lets the replacement take over from a process that has served
    /// enough.
    fn replace(&mut self, number: usize, now: Instant) {
        let replica = &mut self.replicas[number];
        let Some(process) = replica.process else { return };
        let replacement_is_ready = replica.replacement.is_some_and(|replacement| replacement.is_ready);
        let mut is_spent = replica.is_to_change && replacement_is_ready;
        if let Some(readiness) = &self.readiness {
            let table = &readiness.table;
            if process.is_ready && table.is_starting(process.slot) {
                table.set_open(process.slot);
            }
            if is_spent {
                table.retire(process.slot);
            }
            is_spent = table.is_spent(process.slot);
            if let Some(replacement) =
                replica.replacement.filter(|replacement| is_spent && replacement.is_ready)
            {
                table.set_open(replacement.slot);
            }
            is_spent &= table.is_vacated(process.slot);
        }
        if is_spent {
            replica.process = replica.replacement.take();
            replica.is_to_change = false;
            self.tally.recycled += 1;
            self.dismiss(process, self.stop_signal, now);
        }
    }
}

/// The wait before another attempt to find a socket, while ending processes hold all of them.
const SLOT_RETRY: Duration = Duration::from_millis(100);
