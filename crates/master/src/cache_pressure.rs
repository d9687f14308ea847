//! The caches' part of their memory, which follows the pressure on the server's control group.

use std::time::{Duration, Instant};

use baton_cache::MemoryShare;
use baton_config::Config;
use baton_report::log;
use baton_sys::memory_pressure::MemoryPressure;

use super::channel::ToWorker;
use super::workers::Workers;

/// What the kernel says of the group, and what follows from that.
#[derive(Debug)]
pub(crate) struct CachePressure {
    /// Or why nothing is followed.
    source: Result<MemoryPressure, String>,
    share: MemoryShare,
    began: Instant,
    due: Instant,
}

impl CachePressure {
    pub(crate) fn begin(now: Instant) -> Self {
        let source = MemoryPressure::of_this_process().map_err(|error| error.to_string());
        Self { source, share: MemoryShare::default(), began: now, due: now }
    }

    /// When [`advance`](Self::advance) has something to do, again and again if there is a cache in memory.
    pub(crate) fn deadline(&self, config: &Config) -> Option<Instant> {
        (self.source.is_ok() && caches_in_memory(config)).then_some(self.due)
    }

    /// Looks at the pressure, and tells the workers if they may take more memory or less.
    pub(crate) fn advance(&mut self, config: &Config, workers: &Workers, now: Instant) {
        let Ok(source) = &self.source else { return };
        if self.deadline(config).is_none_or(|due| due > now) {
            return;
        }
        self.due = now + INTERVAL;
        let before = self.share.permille();
        match source.stalled_us() {
            Ok(stalled_us) => self.share.handle_reading((now - self.began).as_millis() as u64, stalled_us),
            Err(error) => {
                let why = format!("{}: {error}", source.path().display());
                log::warning(format_args!("the caches do not follow memory pressure any more: {why}"));
                (self.source, self.share) = (Err(why), MemoryShare::default());
            }
        }
        let permille = self.share.permille();
        if permille != before {
            workers.tell_all(&ToWorker::CacheMemory { permille }, &[]);
        }
    }

    /// The part that a new worker's caches may take, in thousandths.
    pub(crate) fn permille(&self) -> u16 {
        self.share.permille()
    }

    /// What is followed, and where that has led, for the status.
    pub(crate) fn told(&self, config: &Config) -> String {
        let tenths = |permille: u16| format!("{}.{} %", permille / 10, permille % 10);
        match &self.source {
            _ if !caches_in_memory(config) => "not followed: nothing is cached in memory".into(),
            Err(why) => format!("not followed: {why}"),
            Ok(source) => format!(
                "{} of the time lost, by {}: the caches have {} of what they can give up",
                tenths(self.share.lost_permille()),
                source.path().display(),
                tenths(self.share.permille()),
            ),
        }
    }
}

/// Whether responses or files are kept in memory.
fn caches_in_memory(config: &Config) -> bool {
    let keeps_files = config.cache.files && config.cache.memory_bytes_max != Some(0);
    keeps_files || config.cached_routes().next().is_some()
}

/// Between two looks: a little more than the two seconds after which the kernel updates its sums.
const INTERVAL: Duration = Duration::from_millis(2_100);
