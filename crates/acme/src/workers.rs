//! Challenges at the workers, through the master.

use std::time::Duration;

use baton_report::OperatorError;

use crate::authority::Responder;
use crate::failure::Failure;
use crate::master::Master;
use crate::messages::{Challenge, FromAcme};

/// The workers as an order sees them.
#[derive(Debug)]
pub(crate) struct Workers {
    pub(crate) master: Master,
    /// Challenges that the workers answer.
    answered: Vec<u64>,
    next_id: u64,
}

impl Workers {
    pub(crate) fn new(master: Master) -> Self {
        Self { master, answered: Vec::new(), next_id: 0 }
    }
}

impl Responder for Workers {
    fn put(&mut self, challenges: Vec<Challenge>) -> Result<(), Failure> {
        for challenge in challenges {
            self.answered.push(self.next_id);
            self.master.tell(&FromAcme::PutChallenge { id: self.next_id, challenge });
            self.next_id += 1;
        }
        if self.master.wait_for_challenges(&self.answered, READY_TIMEOUT) {
            return Ok(());
        }
        Err(Failure::ours(
            OperatorError::new(format!(
                "not all workers answer the authority's questions after {READY_TIMEOUT:?}"
            ))
            .remedy("see `baton ctl status`: is a worker stuck?"),
        ))
    }

    fn remove_all(&mut self) {
        for id in self.answered.drain(..) {
            self.master.tell(&FromAcme::RemoveChallenge { id });
        }
    }

    fn pause(&mut self, time: Duration) {
        self.master.pause(time);
    }
}

/// A worker takes a challenge within one turn of its loops; a stuck one is replaced by the master after this.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
