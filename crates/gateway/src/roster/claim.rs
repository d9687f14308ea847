//! Who may still give requests to the processes of a roster, whether or not anything is under way: so that processes
//! which a configuration has forgotten can end as soon as nobody will ask them any more.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use super::{CLAIMS, HELD, OVERDUE, Roster, STATE_MASK, UNCOUNTED, UNSURE};

/// As long as it lives, its process may have requests for those of a roster.
#[derive(Debug)]
pub struct Claim {
    roster: Arc<Roster>,
    cell: usize,
}

impl Claim {
    /// One more. There are more than anybody has workers; if not, the roster is taken for claimed for ever.
    pub fn new(roster: &Arc<Roster>) -> Option<Self> {
        let pid = u64::from(std::process::id());
        let is_taken = |&cell: &usize| roster.claim(cell).compare_exchange(0, pid, SeqCst, SeqCst).is_ok();
        let cell = (0..CLAIMS).find(is_taken);
        if cell.is_none() {
            roster.numbers[UNCOUNTED].store(1, SeqCst);
        }
        cell.map(|cell| Self { roster: Arc::clone(roster), cell })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.roster.claim(self.cell).store(0, SeqCst);
    }
}

impl Roster {
    /// Whether nobody has a claim, no request waits, and none is under way. A request that is on its way from one thread
    /// to another is not seen: whoever wants to be sure looks twice.
    pub fn is_abandoned(&self) -> bool {
        let is_claimed = (0..CLAIMS).any(|cell| self.claim(cell).load(SeqCst) != 0);
        let is_busy =
            |lane: usize| matches!(self.lane(lane).load(SeqCst) & STATE_MASK, HELD | UNSURE | OVERDUE);
        !is_claimed
            && self.numbers[UNCOUNTED].load(SeqCst) == 0
            && self.waiting() == 0
            && !(0..self.places * self.lanes).any(is_busy)
    }

    /// The claims of a process that is gone.
    pub(super) fn forget_claims(&self, pid: u32) {
        for cell in 0..CLAIMS {
            let _ = self.claim(cell).compare_exchange(pid.into(), 0, SeqCst, SeqCst);
        }
    }
}
