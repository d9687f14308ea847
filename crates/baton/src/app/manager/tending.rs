//! Who begins, and who goes: what becomes of each place, and of how many of them are wanted.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::place::{Place, Process};
use super::{Manager, log};

impl Manager {
    /// Does what the clock, the processes and the loops ask for.
    pub(super) fn tend(&mut self, now: Instant) {
        self.kill_late(now);
        if std::mem::take(&mut self.was_called) {
            self.grow();
        }
        self.shrink(now);
        for number in 0..self.places.len() {
            self.fill(number, now);
            self.succeed(number, now);
        }
        if let Some(keeper) = &self.keeper {
            keeper.roster.offer_more(self.wanted() < self.places.len());
        }
    }

    /// When there is something to tend to though nobody says so.
    pub(super) fn next_tending(&self) -> impl Iterator<Item = Instant> {
        let places = self.places.iter().enumerate().filter_map(|(number, place)| match place.process {
            _ if !place.is_wanted => None,
            None => Some(place.restart.due()),
            // Its heir could not work, and the next one has to wait.
            Some(_) if self.wants_heir(number) => Some(place.restart.due()),
            // Its turn comes when the one before it has gone.
            Some(_) if self.to_replace.contains(&number) || place.is_to_change => None,
            Some(process) => Some(process.since + self.lifetime?),
        });
        let surplus = (self.wanted() > self.places_min).then_some(self.next_look);
        places.chain(surplus).chain(self.keeper.as_ref().and_then(super::Keeper::deadline))
    }

    fn wanted(&self) -> usize {
        self.places.iter().filter(|place| place.is_wanted).count()
    }

    /// Has processes killed that take too long for a request, and asks those that were left in the middle of one.
    fn kill_late(&mut self, now: Instant) {
        for number in 0..self.places.len() {
            let Some(keeper) = &mut self.keeper else { return };
            for process in self.places[number].processes().collect::<Vec<_>>() {
                let slot = process.slot;
                if keeper.roster.is_unsure(slot) {
                    keeper.ask(slot, now);
                }
                if keeper.roster.is_overdue(slot) && keeper.roster.lanes() > 1 {
                    // Others would suffer for the one.
                    keeper.roster.excuse(slot);
                    keeper.ask(slot, now);
                } else if keeper.roster.is_overdue(slot) || keeper.is_lost(slot, now) {
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
        let place = &mut self.places[number];
        place.heir.take_if(|heir| heir.pid == process.pid);
        if place.process.is_some_and(|current| current.pid == process.pid) {
            place.process = place.heir.take();
            place.is_to_change = false;
            place.restart.start_at(now);
        }
        // The signal that asks it to finish what it does would have it go on.
        self.dismiss(process, Signal::TERM.as_raw(), now);
    }

    /// Wants more processes while requests wait: at most as many more as there are, so that what begins can make itself
    /// felt before still more does.
    fn grow(&mut self) {
        let Some(keeper) = &self.keeper else { return };
        let ready = self.places.iter().filter(|place| place.is_ready()).count();
        let starting = self.wanted().saturating_sub(ready);
        let waiting = usize::try_from(keeper.roster.waiting()).unwrap_or(usize::MAX);
        let more = waiting.min(ready.max(1)).saturating_sub(starting);
        let unwanted = self.places.iter_mut().filter(|place| !place.is_wanted && place.process.is_none());
        unwanted.take(more).for_each(|place| place.is_wanted = true);
    }

    /// Lets processes go that have had nothing to do since it was looked at them the last time.
    fn shrink(&mut self, now: Instant) {
        let Some(keeper) = &self.keeper else { return };
        let mut surplus = self.wanted() - self.places_min;
        if surplus == 0 {
            self.next_look = now + self.idle;
        }
        if now < self.next_look {
            return;
        }
        self.next_look = now + self.idle;
        let mut leaving = Vec::new();
        // The loops prefer lower numbers.
        let mut places: Vec<&mut Place> = self.places.iter_mut().filter(|place| place.is_wanted).collect();
        places.sort_by_key(|place| std::cmp::Reverse(place.process.map(|process| process.slot)));
        for place in places {
            let Some(process) = place.process.as_mut() else {
                // Who could not even begin is not missed.
                place.is_wanted = surplus == 0;
                surplus = surplus.saturating_sub(1);
                continue;
            };
            let is_settled = process.is_ready && now.duration_since(process.since) >= self.idle;
            let requests = keeper.roster.requests(process.slot);
            let was_used = std::mem::replace(&mut process.requests_seen, requests) != requests;
            if surplus > 0
                && is_settled
                && !was_used
                && place.heir.is_none()
                && keeper.roster.retire_if_idle(process.slot)
            {
                surplus -= 1;
                place.is_wanted = false;
                place.is_to_change = false;
                leaving.extend(place.process.take());
            }
        }
        for process in leaving {
            self.dismiss(process, self.stop_signal, now);
        }
    }

    /// Has somebody begin where there is nobody, or soon will be.
    fn fill(&mut self, number: usize, now: Instant) {
        let place = &self.places[number];
        let is_empty = place.is_wanted && place.process.is_none();
        if let Some(process) = place.process
            && self.lifetime.is_some_and(|lifetime| now.duration_since(process.since) >= lifetime)
            && !place.is_to_change
            && !self.to_replace.contains(&number)
        {
            self.to_replace.push_back(number);
        }
        if self.leavers.is_empty()
            && self.places.iter().all(|place| !place.is_to_change)
            && self.to_replace.front() == Some(&number)
        {
            self.to_replace.pop_front();
            self.places[number].is_to_change = self.places[number].process.is_some();
        }
        if !(is_empty || self.wants_heir(number)) || self.places[number].restart.due() > now {
            return;
        }
        let started = self.start(now, number);
        let place = &mut self.places[number];
        match started {
            Ok(None) => place.restart.start_at(now + SLOT_RETRY),
            Ok(process) if is_empty => place.process = process,
            Ok(process) => place.heir = process,
            Err(error) => log::error(place.restart.note_failed_start(&self.name, &error, now)),
        }
    }

    fn wants_heir(&self, number: usize) -> bool {
        let place = &self.places[number];
        let Some(process) = place.process.filter(|_| place.heir.is_none()) else { return false };
        place.is_to_change
            || self.keeper.as_ref().is_some_and(|keeper| keeper.roster.is_almost_spent(process.slot))
    }

    /// Shows the loops who is ready, and lets the heir take the place of a process that has served enough.
    fn succeed(&mut self, number: usize, now: Instant) {
        let place = &mut self.places[number];
        let Some(process) = place.process else { return };
        let heir_is_ready = place.heir.is_some_and(|heir| heir.is_ready);
        let mut is_spent = place.is_to_change && heir_is_ready;
        if let Some(keeper) = &self.keeper {
            let roster = &keeper.roster;
            if process.is_ready && roster.is_starting(process.slot) {
                roster.set_open(process.slot);
            }
            if is_spent {
                roster.retire(process.slot);
            }
            is_spent = roster.is_spent(process.slot);
            if let Some(heir) = place.heir.filter(|heir| is_spent && heir.is_ready) {
                roster.set_open(heir.slot);
            }
            is_spent &= roster.is_vacated(process.slot);
        }
        if is_spent {
            place.process = place.heir.take();
            place.is_to_change = false;
            self.tally.recycled += 1;
            self.dismiss(process, self.stop_signal, now);
        }
    }
}

/// How soon it is tried again to find a socket for a process, when those that are to end take their time.
const SLOT_RETRY: Duration = Duration::from_millis(100);
