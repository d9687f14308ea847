//! `auto`: the default. `n-copy` across CPUs, `amped` within each, and tuning itself.
//!
//! A process per CPU with a listening socket of its own, so that CPUs share nothing; in each an event loop that
//! gives to helpers what might wait for the disk. If responses of origins or applications are kept for other clients, the
//! loops are threads of one process instead: they share that cache, the files, and the listening socket (decision 0043).
//! Once a second the loop looks at what it measured and changes how it works:
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

mod self_tuning;

use std::io;

use baton_content::Blocking;
use baton_session::context::Context;
use baton_session::session::Session;
use baton_telemetry::metrics::Metric;
use serde_json::{Value, json};

use super::{Architecture, ListenerSharing};
use crate::blocked_time::BlockedTime;
use crate::event_loop::{Load, Tuner};
use crate::helpers::Helpers;
use crate::process::Process;
use crate::settings::Tuning;
use self_tuning::{Measured, SelfTuning, Sending};

pub(super) const ARCHITECTURE: Architecture = Architecture {
    processes: |tuning, cpus| if tuning.wants_one_process { 1 } else { cpus },
    listeners: ListenerSharing::PerProcess,
    loops,
    held_up_by_a_slow_client: Some("the disk jobs of all others: it would hold a helper"),
    adapt: |_| (),
    serve,
};

fn serve(process: &Process) -> io::Result<()> {
    let loops = loops(&process.tuning);
    if loops == 1 {
        // Several loops would wait for each other.
        baton_sys::memory::share_heaps();
    }
    let cache = process.cache(1);
    process.on_threads(loops, |index| {
        let ctx = process.context(cache.clone(), Blocking::Never);
        let tuner = SelfTuner::new(process.tuning.helpers_max, index == 0);
        let helpers = Helpers::new(tuner.tuning.choice().helpers_max)?;
        let name = if loops == 1 { "loop".to_owned() } else { format!("loop-{index}") };
        let event_loop = process.event_loop::<Box<Session>, _>(&name, ctx, helpers, Some(Box::new(tuner)))?;
        Ok(Box::new(move || event_loop.run(process.heartbeats.heart(index))))
    })
}

/// One for each CPU, where one process does it all and its number is not configured.
fn loops(tuning: &Tuning) -> usize {
    if !tuning.wants_one_process || tuning.processes.is_some() {
        return 1;
    }
    let own_choice = || std::thread::available_parallelism().map_or(1, usize::from);
    tuning.threads.unwrap_or_else(own_choice).max(1)
}

/// Measures, has [`SelfTuning`] choose, and carries the choice out.
struct SelfTuner {
    tuning: SelfTuning,
    blocked: BlockedTime,
    /// The last second.
    measured: Measured,
    jobs_before: u64,
    blocked_ms_total: u64,
    /// Seconds since files are sent from where they are sent now.
    sending_s: u32,
    /// Whether it decides where files are sent from: one of the loops that share them does.
    tunes_files: bool,
}

impl Tuner<Helpers> for SelfTuner {
    fn tick(&mut self, ctx: &mut Context, helpers: &mut Helpers, load: &Load) {
        let measured = Measured {
            jobs: load.jobs - std::mem::replace(&mut self.jobs_before, load.jobs),
            blocked_ms: self.blocked.since_last(load.busy_us) / 1000,
            jobs_under_way: helpers.under_way(),
            jobs_of_many: helpers.under_way_by_many(self.tuning.jobs_of_client_max()),
            connections: load.connections,
        };
        self.blocked_ms_total += measured.blocked_ms;
        ctx.tally.add(Metric::LoopBlockedMs, measured.blocked_ms);
        let before = self.tuning.choice();
        let choice = self.tuning.handle_second(&measured);
        helpers.set_helpers_max(choice.helpers_max);
        ctx.connections_admitted = choice.connections_max.unwrap_or(usize::MAX);
        self.sending_s = self.sending_s.saturating_add(1);
        self.measured = measured;
        if !self.tunes_files {
            return;
        }
        if choice.sending != before.sending {
            self.sending_s = 0;
            send_from(choice.sending, ctx);
        }
        if choice.sending == Sending::FromPageCache && [0, SETTLED_S].contains(&self.sending_s) {
            // What the cache lets go of is of no use as long as the allocator holds it.
            baton_sys::memory::give_back();
        }
    }

    fn report(&self) -> Value {
        let choice = self.tuning.choice();
        let (sending, why_sending) = match choice.sending {
            Sending::FromMemory => {
                ("from-memory", "content fits memory: the disk is not needed all the time")
            }
            Sending::FromPageCache => (
                "from-page-cache",
                "the disk is needed second after second: memory is left to the page cache",
            ),
        };
        let why_admitted = match choice.connections_max {
            None => "helpers keep up with the jobs",
            Some(_) => "more jobs of several clients wait for the disk than helpers can do",
        };
        json!({
            "jobs_last_second": self.measured.jobs,
            "blocked_ms_last_second": self.measured.blocked_ms,
            "blocked_ms_total": self.blocked_ms_total,
            "disk_needed_s": self.tuning.disk_needed_s,
            "disk_quiet_s": self.tuning.disk_quiet_s,
            "helpers_max": choice.helpers_max,
            "sending": self.tunes_files.then_some(sending),
            "sending_why": self.tunes_files.then_some(why_sending),
            "connections_admitted": choice.connections_max,
            "connections_admitted_why": why_admitted,
        })
    }
}

impl SelfTuner {
    fn new(helpers_limit: usize, tunes_files: bool) -> Self {
        Self {
            tuning: SelfTuning::new(helpers_limit),
            blocked: BlockedTime::default(),
            measured: Measured::default(),
            jobs_before: 0,
            blocked_ms_total: 0,
            sending_s: 0,
            tunes_files,
        }
    }
}

/// Has files kept in memory as configured, or memory left to the page cache.
fn send_from(sending: Sending, ctx: &Context) {
    let cache = &ctx.cache;
    let configured = cache.settings();
    let (file_bytes, hot_file_bytes, bytes) = match sending {
        Sending::FromMemory => (
            configured.memory_file_bytes_max,
            configured.memory_hot_file_bytes_max,
            configured.memory_bytes_max,
        ),
        Sending::FromPageCache => (
            configured.memory_file_bytes_max.min(TINY_FILE_BYTES),
            0,
            configured.memory_bytes_max / MEMORY_SHARE_WHEN_SHORT,
        ),
    };
    cache.set_memory_file_bytes_max(file_bytes);
    cache.set_memory_hot_file_bytes_max(hot_file_bytes);
    cache.set_memory_bytes_max(bytes);
}

/// After which names have been looked at again, and with them the larger files that are not to stay in memory.
const SETTLED_S: u32 = 10;
/// Files that are kept in memory even when memory is short: the page cache rounds them up to a page.
const TINY_FILE_BYTES: u64 = 2048;
/// One part in so many of the configured memory is kept when memory is short.
const MEMORY_SHARE_WHEN_SHORT: u64 = 8;

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::sync::Arc;

    use baton_buf::{FileSlice, OpenFile};
    use baton_content::{CacheSettings, Query, Tree, TreeConfig, View};
    use baton_http::AcceptedCodings;
    use baton_session::job::Job;
    use baton_shares::ClientKey;

    use super::*;
    use crate::clients::Token;

    /// Goal: what is chosen happens, in either direction. Method: seconds as a loop would tell of them.
    #[test]
    fn choices_are_carried_out() {
        let folder = tempfile::tempdir().unwrap();
        (0..8).for_each(|file| fs::write(folder.path().join(file.to_string()), [7; 6 << 10]).unwrap());
        let config = TreeConfig { root: folder.path().to_owned(), ..TreeConfig::default() };
        let tree = Arc::new(Tree::open(config).unwrap());
        let file = Arc::new(OpenFile::new(File::open(folder.path().join("0")).unwrap().into()));

        let cache = CacheSettings { memory_bytes_max: 64 << 10, revalidate_ms: 0, ..Default::default() };
        let mut ctx = Context::without_sites(cache);
        let mut helpers = Helpers::new(1).unwrap();
        let mut tuner = SelfTuner::new(8, true);
        let mut load = Load { connections: 70, jobs: 0, busy_us: 0 };
        let mut pass = |seconds, jobs, ctx: &mut Context, helpers: &mut Helpers| {
            for _ in 0..seconds {
                load.jobs += jobs;
                tuner.tick(ctx, helpers, &load);
            }
            tuner.report()
        };
        let bytes_in_memory = |ctx: &Context| {
            for file in 0..8 {
                let path = format!("/{file}");
                let query = Query {
                    path: path.as_bytes(),
                    accepted: AcceptedCodings::default(),
                    view: View::default(),
                };
                ctx.cache.find(&tree, &query, ctx.clock.stamp(), Blocking::Allowed).unwrap();
            }
            ctx.cache.stats().memory_bytes
        };

        assert_eq!(pass(1, 0, &mut ctx, &mut helpers)["sending"], "from-memory");
        assert!(bytes_in_memory(&ctx) > 48 << 10);
        assert_eq!(pass(8, 100, &mut ctx, &mut helpers)["sending"], "from-page-cache");
        assert!(ctx.cache.stats().memory_bytes <= 8 << 10, "it has been given back");
        assert!(bytes_in_memory(&ctx) <= 8 << 10, "and is not taken again");
        assert_eq!(pass(60, 0, &mut ctx, &mut helpers)["sending"], "from-memory");
        assert!(bytes_in_memory(&ctx) > 48 << 10);

        assert_eq!((helpers.helpers_max(), ctx.connections_admitted), (4, usize::MAX));
        // Until its answer is taken a job is under way.
        let submit = |jobs, client, helpers: &mut Helpers| {
            for job in 0..jobs {
                let slice = FileSlice::new(Arc::clone(&file), 0, 1);
                helpers.submit(Token::from_data(job), client, Job::PageIn { stream: None, slice });
            }
        };
        submit(8 * 32, Some(ClientKey::of([192, 0, 2, 1].into())), &mut helpers);
        assert_eq!(pass(1, 0, &mut ctx, &mut helpers)["connections_admitted"], Value::Null, "one client");
        submit(8 * 12, None, &mut helpers);
        assert_eq!(pass(1, 0, &mut ctx, &mut helpers)["connections_admitted"], 70);
        assert_eq!((helpers.helpers_max(), ctx.connections_admitted), (8, 70));
        let mut done = Vec::new();
        while helpers.under_way() > 0 {
            helpers.take_done(&mut done);
        }
        pass(60, 0, &mut ctx, &mut helpers);
        assert_eq!((helpers.helpers_max(), ctx.connections_admitted), (4, usize::MAX));
    }
}
