//! How long a thread waited inside calls that should not wait.

use baton_sys::usage::thread_usage;

/// The part of a loop's busy time that it spent neither on a CPU nor in the queue for one. It can only have waited for
/// a disk, or for a page that had to be read from one.
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
    /// Microseconds blocked since the last call; to be called on the thread in question. `busy_us`: the total time that
    /// it has spent outside of its wait for events.
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
