//! Which workers may still give requests to the processes of a table, so that processes which the configuration has
//! dropped can end as soon as no request can come any more.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use crate::table::{CLAIMS, HELD, OVERDUE, ProcessTable, STATE_MASK, UNCOUNTED, UNSURE};

/// While a claim exists, its worker may have requests for the processes of a table.
#[derive(Debug)]
pub struct Claim {
    table: Arc<ProcessTable>,
    cell: usize,
}

impl Claim {
    /// Claims the table for this process. If there is no room for another claim, the table stays claimed for ever.
    pub fn new(table: &Arc<ProcessTable>) -> Option<Self> {
        let pid = u64::from(std::process::id());
        let is_taken = |&cell: &usize| table.claim(cell).compare_exchange(0, pid, SeqCst, SeqCst).is_ok();
        let cell = (0..CLAIMS).find(is_taken);
        if cell.is_none() {
            table.numbers[UNCOUNTED].store(1, SeqCst);
        }
        cell.map(|cell| Self { table: Arc::clone(table), cell })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.table.claim(self.cell).store(0, SeqCst);
    }
}

impl ProcessTable {
    /// Whether there is no claim, no waiting request, and none under way. A request between two threads is not seen: to
    /// be sure, ask twice.
    pub fn is_abandoned(&self) -> bool {
        let is_claimed = (0..CLAIMS).any(|cell| self.claim(cell).load(SeqCst) != 0);
        let is_busy =
            |lane: usize| matches!(self.lane(lane).load(SeqCst) & STATE_MASK, HELD | UNSURE | OVERDUE);
        !is_claimed
            && self.numbers[UNCOUNTED].load(SeqCst) == 0
            && self.waiting() == 0
            && !(0..self.slots * self.lanes).any(is_busy)
    }

    /// Drops the claims of a process that has ended.
    pub(crate) fn forget_claims(&self, pid: u32) {
        for cell in 0..CLAIMS {
            let _ = self.claim(cell).compare_exchange(pid.into(), 0, SeqCst, SeqCst);
        }
    }
}
