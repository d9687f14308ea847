//! For how long a thread was kept waiting inside calls that should not wait.

use baton_sys::usage::thread_usage;

/// Of the time that a loop was busy, what was neither spent on a CPU nor in the queue for one: it was waiting for
/// something else, which can only be a disk (or a page that had to come from one).
#[derive(Debug, Default)]
pub(crate) struct BlockedTime {
    before: Option<Account>,
}

#[derive(Clone, Copy, Debug)]
struct Account {
    busy_us: u64,
    cpu_us: u64,
    queued_us: u64,
}

impl BlockedTime {
    /// Microseconds blocked since the last call; to be called on the thread in question. `busy_us` is the time that
    /// it has been outside of its wait for events, ever.
    pub(crate) fn since_last(&mut self, busy_us: u64) -> u64 {
        let (Ok(usage), Some(queued_us)) = (thread_usage(), queued_us()) else { return 0 };
        let now = Account { busy_us, cpu_us: usage.cpu_us, queued_us };
        let before = self.before.replace(now).unwrap_or(now);
        let busy = now.busy_us - before.busy_us;
        let accounted = (now.cpu_us - before.cpu_us) + (now.queued_us - before.queued_us);
        busy.saturating_sub(accounted)
    }
}

/// How long this thread has been ready to run while others ran.
fn queued_us() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(nanoseconds / 1000)
}
