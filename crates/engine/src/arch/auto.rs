//! `auto`: the default. `n-copy` across CPUs, `amped` within each, and tuning itself.
//!
//! A process per CPU with a listening socket of its own, so that CPUs share nothing; in each an event loop that
//! gives to helpers what might wait for the disk. Once a second the loop looks at what it measured and changes how
//! it works:
//!
//! ```text
//!   measured                                          changed
//!   jobs that wait for a helper                       the number of helpers
//!   jobs that wait although all helpers work          the connections admitted
//!   seconds in which the disk was needed, and how     the way of sending: how much of files is kept in the
//!   long the loop itself was blocked                  server's memory, and up to which size
//! ```
//!
//! Files kept in memory are sent with one call and no page cache look-up, but they are second copies. As long as
//! all content fits the machine's memory that is a good bargain. When the disk is needed second after second, it
//! does not fit, and the memory is worth more as page cache: files then go with `sendfile`.
//!
//! Source: Pai 1999, chapter 4 (AMPED); Harji 2010, sections 4.4 (partitioning) and 6.1, who asks for servers that
//! tune themselves and warns that idle time alone is a bad signal: the signals here are waiting jobs and blocking.

use std::io;

use super::{Architecture, ListenerSharing};
use baton_content::{Blocking, CacheSettings};
use serde_json::{Value, json};

use crate::blocked::BlockedTime;
use crate::context::Context;
use crate::event_loop::{Load, Tuner};
use crate::helpers::Helpers;
use crate::metrics::Metric;
use crate::session::Session;
use crate::worker::Process;

pub(super) const ARCHITECTURE: Architecture = Architecture {
    processes: |cpus| cpus,
    listeners: ListenerSharing::PerProcess,
    loops: |_| 1,
    held_up_by_a_slow_client: Some("the disk jobs of all others: it would hold a helper"),
    adapt: |_| (),
    serve,
};

fn serve(process: &Process) -> io::Result<()> {
    let ctx = process.context(process.cache(1), Blocking::Never);
    let helpers_max = process.tuning.helpers_max.max(1);
    let helpers = Helpers::new(HELPERS_FEW.min(helpers_max))?;
    let tuner = SelfTuner {
        helpers_max,
        cache: process.tuning.cache.clone(),
        blocked: BlockedTime::default(),
        jobs_before: 0,
        seconds: Seconds::default(),
        sending: Sending::FromMemory,
        admitting: Admitting::Everybody,
        blocked_ms_total: 0,
    };
    process
        .event_loop::<Box<Session>, _>("loop", ctx, helpers, Some(Box::new(tuner)))?
        .run(process.heartbeats.heart(0))
}

/// What is known of the past, and what was chosen.
struct SelfTuner {
    helpers_max: usize,
    cache: CacheSettings,
    blocked: BlockedTime,
    jobs_before: u64,
    seconds: Seconds,
    sending: Sending,
    admitting: Admitting,
    blocked_ms_total: u64,
}

/// For how long things have been as they are, in seconds.
#[derive(Default)]
struct Seconds {
    disk_needed: u32,
    disk_quiet: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sending {
    /// Small files from memory, large ones with `sendfile`: as configured.
    FromMemory,
    /// All but tiny files with `sendfile`, memory left to the page cache.
    FromPageCache,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Admitting {
    Everybody,
    /// No more than were there when helpers could not keep up.
    AtMost(usize),
}

impl Tuner<Helpers> for SelfTuner {
    fn tick(&mut self, ctx: &mut Context, helpers: &mut Helpers, load: &Load) -> Value {
        let jobs = load.jobs - std::mem::replace(&mut self.jobs_before, load.jobs);
        let blocked_ms = self.blocked.since_last(load.busy_us) / 1000;
        self.blocked_ms_total += blocked_ms;
        ctx.tally.add(Metric::LoopBlockedMs, blocked_ms);
        if jobs >= JOBS_PER_SECOND_MANY || blocked_ms >= BLOCKED_MS_MUCH {
            self.seconds.disk_needed += 1;
            self.seconds.disk_quiet = 0;
        } else {
            self.seconds.disk_quiet += 1;
            if self.seconds.disk_quiet >= SECONDS_UNTIL_QUIET {
                self.seconds.disk_needed = 0;
            }
        }
        self.choose_helpers(helpers);
        self.choose_admission(helpers, load, ctx);
        self.choose_sending(ctx);
        self.report(helpers, jobs, blocked_ms)
    }
}

impl SelfTuner {
    /// More while jobs wait, up to the bound; fewer when the disk has been quiet for long.
    fn choose_helpers(&self, helpers: &mut Helpers) {
        if helpers.under_way() > helpers.helpers_max {
            helpers.helpers_max = (helpers.helpers_max * 2).min(self.helpers_max);
        } else if self.seconds.disk_quiet >= SECONDS_UNTIL_FORGOTTEN {
            helpers.helpers_max = HELPERS_FEW.min(self.helpers_max);
        }
    }

    /// Accepting more clients than the disk can serve only makes all of them slower (Harji: the connection cap is
    /// the most important knob). Those that are in stay.
    fn choose_admission(&mut self, helpers: &Helpers, load: &Load, ctx: &mut Context) {
        let waiting = helpers.under_way() / self.helpers_max;
        self.admitting = match self.admitting {
            Admitting::Everybody if waiting >= JOBS_PER_HELPER_TOO_MANY => {
                Admitting::AtMost(load.connections)
            }
            Admitting::AtMost(_) if waiting < JOBS_PER_HELPER_TOO_MANY / 2 => Admitting::Everybody,
            unchanged => unchanged,
        };
        ctx.connections_admitted = match self.admitting {
            Admitting::Everybody => usize::MAX,
            Admitting::AtMost(connections) => connections,
        };
    }

    fn choose_sending(&mut self, ctx: &Context) {
        let chosen = match self.sending {
            Sending::FromMemory if self.seconds.disk_needed >= SECONDS_UNTIL_SHORT_OF_MEMORY => {
                Sending::FromPageCache
            }
            Sending::FromPageCache if self.seconds.disk_quiet >= SECONDS_UNTIL_FORGOTTEN => {
                Sending::FromMemory
            }
            unchanged => unchanged,
        };
        if chosen != self.sending {
            self.sending = chosen;
            let (file_bytes, hot_file_bytes, bytes) = match chosen {
                Sending::FromMemory => (
                    self.cache.memory_file_bytes_max,
                    self.cache.memory_hot_file_bytes_max,
                    self.cache.memory_bytes_max,
                ),
                Sending::FromPageCache => (
                    self.cache.memory_file_bytes_max.min(TINY_FILE_BYTES),
                    0,
                    self.cache.memory_bytes_max / MEMORY_SHARE_WHEN_SHORT,
                ),
            };
            ctx.cache.set_memory_file_bytes_max(file_bytes);
            ctx.cache.set_memory_hot_file_bytes_max(hot_file_bytes);
            ctx.cache.set_memory_bytes_max(bytes);
            if chosen == Sending::FromPageCache {
                // What the cache has let go is of use to nobody as long as the allocator holds it.
                baton_sys::memory::give_back();
            }
        }
    }

    fn report(&self, helpers: &Helpers, jobs: u64, blocked_ms: u64) -> Value {
        let (sending, why_sending) = match self.sending {
            Sending::FromMemory => {
                ("from-memory", "content fits memory: the disk is not needed all the time")
            }
            Sending::FromPageCache => (
                "from-page-cache",
                "the disk is needed second after second: memory is left to the page cache",
            ),
        };
        let (admitted, why_admitted) = match self.admitting {
            Admitting::Everybody => (Value::Null, "helpers keep up with the jobs"),
            Admitting::AtMost(most) => (most.into(), "more jobs wait for the disk than helpers can do"),
        };
        json!({
            "jobs_last_second": jobs,
            "blocked_ms_last_second": blocked_ms,
            "blocked_ms_total": self.blocked_ms_total,
            "disk_needed_s": self.seconds.disk_needed,
            "disk_quiet_s": self.seconds.disk_quiet,
            "helpers_max": helpers.helpers_max,
            "sending": sending,
            "sending_why": why_sending,
            "connections_admitted": admitted,
            "connections_admitted_why": why_admitted,
        })
    }
}

/// Helpers allowed while nothing is known of the disk.
const HELPERS_FEW: usize = 4;
/// Jobs in a second that tell a disk at work from a file that was looked at for the first time.
const JOBS_PER_SECOND_MANY: u64 = 20;
/// Of a second: what an event loop may be blocked without anybody noticing.
const BLOCKED_MS_MUCH: u64 = 50;
/// Jobs under way per helper at which a further client would wait longer than is any use.
const JOBS_PER_HELPER_TOO_MANY: usize = 16;
/// Warming up takes a few seconds of disk; more means that content does not fit.
const SECONDS_UNTIL_SHORT_OF_MEMORY: u32 = 8;
/// A gap that ends a time of need.
const SECONDS_UNTIL_QUIET: u32 = 5;
/// After which the ordinary way is tried again.
const SECONDS_UNTIL_FORGOTTEN: u32 = 60;
/// Files that are kept in memory even when memory is short: the page cache rounds them up to a page.
const TINY_FILE_BYTES: u64 = 2048;
/// One part in so many of the configured memory is kept when memory is short.
const MEMORY_SHARE_WHEN_SHORT: u64 = 8;
