//! What `auto` decides once a second. Pure: what was measured goes in, how to work from now on comes out.
//!
//! Each decision has a threshold for either direction, far enough apart that a steady load does not move it to and fro:
//!
//! | | more when | less when |
//! |---|---|---|
//! | helpers | more jobs are under way than helpers allowed: doubled | a few have been enough for a minute |
//! | clients | helpers keep up: fewer than 8 jobs per helper | 16 jobs per helper, a quarter of them of one client at most: no more than there are |
//! | files in memory | the disk has been quiet: for a minute, twice as long after each vain attempt | the disk was needed in 8 seconds, without 5 quiet ones between |

/// A second of a loop's life.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    /// Jobs begun.
    pub(super) jobs: u64,
    /// For how long the loop itself was kept waiting, in milliseconds.
    pub(super) blocked_ms: u64,
    /// Jobs that are not done at its end.
    pub(super) jobs_under_way: usize,
    /// Jobs not done at its end, of each client [`SelfTuning::jobs_of_client_max`] at most.
    pub(super) jobs_of_many: usize,
    /// Clients at its end.
    pub(super) connections: usize,
}

/// How the loop works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Bound on the number of helpers.
    pub(super) helpers_max: usize,
    /// Bound on the number of clients; `None`: as configured.
    pub(super) connections_max: Option<usize>,
    pub(super) sending: Sending,
}

/// What the server's memory is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// Small files from memory, large ones with `sendfile`: as configured.
    FromMemory,
    /// All but tiny files with `sendfile`, memory left to the page cache.
    FromPageCache,
}

/// What is known of the past, and what was chosen.
#[derive(Debug)]
pub(super) struct SelfTuning {
    helpers_limit: usize,
    choice: Choice,
    /// Seconds in a row for which [`HELPERS_FEW`] would have been enough.
    few_enough_s: u32,
    pub(super) disk_needed_s: u32,
    pub(super) disk_quiet_s: u32,
    /// Seconds since files are sent from memory.
    from_memory_s: u32,
    /// Quiet seconds after which files are sent from memory again.
    quiet_until_retry_s: u32,
}

impl SelfTuning {
    /// `helpers_limit`: how many helpers may ever be allowed.
    pub(super) fn new(helpers_limit: usize) -> Self {
        let helpers_limit = helpers_limit.max(1);
        let helpers_max = HELPERS_FEW.min(helpers_limit);
        Self {
            helpers_limit,
            choice: Choice { helpers_max, connections_max: None, sending: Sending::FromMemory },
            few_enough_s: 0,
            disk_needed_s: 0,
            disk_quiet_s: 0,
            from_memory_s: 0,
            quiet_until_retry_s: QUIET_UNTIL_RETRY_S,
        }
    }

    /// How the loop works at present.
    pub(super) fn choice(&self) -> Choice {
        self.choice
    }

    /// Jobs of one client that speak for a disk that cannot keep up: a quarter of too many, so that one client alone keeps no
    /// other out.
    pub(super) fn jobs_of_client_max(&self) -> usize {
        self.helpers_limit * JOBS_PER_HELPER_TOO_MANY / 4
    }

    /// Learns from a second and chooses for the next.
    pub(super) fn handle_second(&mut self, measured: &Measured) -> Choice {
        if measured.jobs >= JOBS_MANY || measured.blocked_ms >= BLOCKED_MS_MUCH {
            self.disk_needed_s = self.disk_needed_s.saturating_add(1);
            self.disk_quiet_s = 0;
        } else {
            self.disk_quiet_s = self.disk_quiet_s.saturating_add(1);
            if self.disk_quiet_s >= QUIET_UNTIL_FORGOTTEN_S {
                self.disk_needed_s = 0;
            }
        }
        self.choose_helpers(measured);
        self.choose_connections(measured);
        self.choose_sending();
        self.choice
    }

    fn choose_helpers(&mut self, measured: &Measured) {
        let is_few_enough = measured.jobs_under_way <= HELPERS_FEW;
        self.few_enough_s = if is_few_enough { self.few_enough_s.saturating_add(1) } else { 0 };
        let helpers_max = &mut self.choice.helpers_max;
        if measured.jobs_under_way > *helpers_max {
            *helpers_max = (*helpers_max * 2).min(self.helpers_limit);
        } else if self.few_enough_s >= FEW_ENOUGH_S {
            *helpers_max = HELPERS_FEW.min(self.helpers_limit);
        }
    }

    /// Accepting more clients than the disk can serve only makes all of them slower (Harji: the connection cap is
    /// the most important knob). Those that are in stay.
    fn choose_connections(&mut self, measured: &Measured) {
        let waiting = measured.jobs_of_many / self.helpers_limit;
        self.choice.connections_max = match self.choice.connections_max {
            None if waiting >= JOBS_PER_HELPER_TOO_MANY => Some(measured.connections),
            Some(_) if waiting < JOBS_PER_HELPER_TOO_MANY / 2 => None,
            unchanged => unchanged,
        };
    }

    fn choose_sending(&mut self) {
        match self.choice.sending {
            Sending::FromMemory => {
                self.from_memory_s = self.from_memory_s.saturating_add(1);
                if self.from_memory_s >= self.quiet_until_retry_s {
                    self.quiet_until_retry_s = QUIET_UNTIL_RETRY_S;
                }
                if self.disk_needed_s >= NEEDED_UNTIL_SHORT_OF_MEMORY_S {
                    self.choice.sending = Sending::FromPageCache;
                }
            }
            Sending::FromPageCache if self.disk_quiet_s >= self.quiet_until_retry_s => {
                self.choice.sending = Sending::FromMemory;
                self.from_memory_s = 0;
                self.quiet_until_retry_s = (self.quiet_until_retry_s * 2).min(QUIET_UNTIL_RETRY_MAX_S);
            }
            Sending::FromPageCache => {}
        }
    }
}

/// Helpers allowed while nothing is known of the disk.
const HELPERS_FEW: usize = 4;
/// After which helpers that a burst has brought end.
const FEW_ENOUGH_S: u32 = 60;
/// Jobs in a second that tell a disk at work from a file that was looked at for the first time.
const JOBS_MANY: u64 = 20;
/// Of a second: clients of a loop do not notice less.
const BLOCKED_MS_MUCH: u64 = 50;
/// Jobs under way per helper at which a further client would wait longer than is any use.
const JOBS_PER_HELPER_TOO_MANY: usize = 16;
/// Warming up takes a few seconds of disk; more means that content does not fit.
const NEEDED_UNTIL_SHORT_OF_MEMORY_S: u32 = 8;
/// A gap that ends a time of need.
const QUIET_UNTIL_FORGOTTEN_S: u32 = 5;
/// After which the ordinary way is tried again. If that brings the disk back, the next attempt waits twice as long.
const QUIET_UNTIL_RETRY_S: u32 = 60;
const QUIET_UNTIL_RETRY_MAX_S: u32 = 3600;

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Measured =
        Measured { jobs: 3, blocked_ms: 10, jobs_under_way: 1, jobs_of_many: 1, connections: 100 };
    const DISK: Measured =
        Measured { jobs: 500, blocked_ms: 0, jobs_under_way: 4, jobs_of_many: 4, connections: 100 };

    /// Lets so many seconds like this pass; how often the choice changed, and what it is.
    fn pass(tuning: &mut SelfTuning, seconds: u32, measured: &Measured) -> (u32, Choice) {
        let mut changes = 0;
        for _ in 0..seconds {
            let before = tuning.choice();
            changes += u32::from(tuning.handle_second(measured) != before);
        }
        (changes, tuning.choice())
    }

    fn with_jobs(jobs_under_way: usize) -> Measured {
        Measured { jobs_under_way, jobs_of_many: jobs_under_way, ..CALM }
    }

    #[test]
    fn helpers_come_with_waiting_jobs_and_leave_when_a_few_are_enough() {
        let mut tuning = SelfTuning::new(16);
        let helpers = |(_, choice): (u32, Choice)| choice.helpers_max;
        assert_eq!(helpers(pass(&mut tuning, 100, &with_jobs(4))), 4, "each has a helper");
        assert_eq!(helpers(pass(&mut tuning, 1, &with_jobs(5))), 8);
        assert_eq!(helpers(pass(&mut tuning, 9, &with_jobs(200))), 16, "no more than are configured");
        assert_eq!(helpers(pass(&mut tuning, 59, &with_jobs(4))), 16);
        assert_eq!(helpers(pass(&mut tuning, 1, &with_jobs(5))), 16, "a few are not enough yet");
        assert_eq!(helpers(pass(&mut tuning, 59, &with_jobs(4))), 16);
        assert_eq!(helpers(pass(&mut tuning, 1, &with_jobs(4))), 4);
        assert_eq!(
            helpers(pass(&mut SelfTuning::new(2), 100, &with_jobs(50))),
            2,
            "less than a few are configured"
        );
    }

    #[test]
    fn clients_are_admitted_as_long_as_helpers_keep_up() {
        let mut tuning = SelfTuning::new(16);
        let most = |(_, choice): (u32, Choice)| choice.connections_max;
        assert_eq!(most(pass(&mut tuning, 100, &with_jobs(16 * 16 - 1))), None);
        let flooded = Measured { connections: 300, ..with_jobs(16 * 16) };
        assert_eq!(most(pass(&mut tuning, 1, &flooded)), Some(300));
        assert_eq!(
            most(pass(&mut tuning, 9, &Measured { connections: 290, ..flooded })),
            Some(300),
            "it stays"
        );
        assert_eq!(most(pass(&mut tuning, 9, &with_jobs(16 * 8))), Some(300));
        assert_eq!(most(pass(&mut tuning, 1, &with_jobs(16 * 8 - 1))), None);
    }

    #[test]
    fn memory_is_left_to_the_page_cache_while_the_disk_is_needed() {
        let sending = |(_, choice): (u32, Choice)| choice.sending;
        for needed in [DISK, Measured { blocked_ms: 50, ..CALM }] {
            let mut tuning = SelfTuning::new(16);
            assert_eq!(sending(pass(&mut tuning, 7, &needed)), Sending::FromMemory, "it may be warming up");
            pass(&mut tuning, 5, &CALM);
            assert_eq!(
                sending(pass(&mut tuning, 7, &needed)),
                Sending::FromMemory,
                "the gap was long enough"
            );
            pass(&mut tuning, 4, &CALM);
            assert_eq!(sending(pass(&mut tuning, 1, &needed)), Sending::FromPageCache, "this one was not");
            assert_eq!(sending(pass(&mut tuning, 59, &CALM)), Sending::FromPageCache);
            pass(&mut tuning, 1, &needed);
            assert_eq!(sending(pass(&mut tuning, 59, &CALM)), Sending::FromPageCache);
            assert_eq!(sending(pass(&mut tuning, 1, &CALM)), Sending::FromMemory);
        }
    }

    /// Under any steady load the choices settle within half an hour, and then nothing changes.
    #[test]
    fn nothing_moves_under_a_steady_load() {
        for jobs in [0, 19, 20, 5000] {
            for blocked_ms in [0, 49, 50, 900] {
                for jobs_under_way in [0, 1, 4, 5, 8, 16, 17, 127, 128, 255, 256, 4000] {
                    for helpers_limit in [1, 3, 4, 16, 64] {
                        let load =
                            Measured { jobs, blocked_ms, connections: 5000, ..with_jobs(jobs_under_way) };
                        let mut tuning = SelfTuning::new(helpers_limit);
                        pass(&mut tuning, 1800, &load);
                        assert_eq!(pass(&mut tuning, 1800, &load).0, 0, "{load:?}, {helpers_limit} helpers");
                    }
                }
            }
        }
    }

    /// Content fits the page cache, but not beside copies of it: the choice itself brings the disk back. A day of that
    /// costs few attempts, and they do not become more.
    #[test]
    fn an_attempt_that_brings_the_disk_back_is_made_less_and_less_often() {
        let mut tuning = SelfTuning::new(16);
        let mut attempts_in = |hours: u32| {
            let mut attempts = 0;
            for _ in 0..hours * 3600 {
                let before = tuning.choice().sending;
                let load = if before == Sending::FromMemory { &DISK } else { &CALM };
                let after = tuning.handle_second(load).sending;
                attempts += u32::from(before == Sending::FromPageCache && after == Sending::FromMemory);
            }
            attempts
        };
        assert!(attempts_in(2) <= 7);
        assert!(attempts_in(22) <= 22);
        // Once content has become smaller, one attempt is enough, and its success is not held against the next.
        pass(&mut tuning, 2 * 3600, &CALM);
        assert_eq!(pass(&mut tuning, 3600, &CALM), (0, tuning.choice()));
        assert_eq!(tuning.choice().sending, Sending::FromMemory);
        pass(&mut tuning, 8, &DISK);
        assert_eq!(tuning.choice().sending, Sending::FromPageCache);
        pass(&mut tuning, 60, &CALM);
        assert_eq!(tuning.choice().sending, Sending::FromMemory);
    }
}
