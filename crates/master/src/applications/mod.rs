//! The applications that the configuration says how to start: a pool of processes for each, which a manager of its own
//! keeps running (`baton app run`).
//!
//! ```text
//!   master ── process table of a pool, by standard input ──► manager ──► processes, each with a socket
//!     ▲ └──── the same table ──► workers: take a process, connect to its socket, release it
//!     └──── what manager and processes print, a file with what has happened ◄── manager
//! ```
//!
//! The [process table](baton_process_table::ProcessTable) belongs to the master. When a manager ends, and its processes
//! with it, requests wait for those of the next one. The sockets are in a folder that only the workers may enter. Each
//! master has its own, so a server and its successor have processes of their own. Workers know no commands: their
//! configuration has addresses, and each of these has a process table.
//!
//! A reload keeps pools that stay the same. The master stops the others when no worker can have a request for them and
//! none is under way, or at their deadline.

mod folder;
mod pool;

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_config::{Application, Config, ProcessTables, Target, libraries};
use baton_report::OperatorError;
use baton_report::log;
use baton_sys::process::Ended;
use rustix::process::Pid;
use serde_json::Value;

use self::folder::Folder;
use self::pool::Pool;
use super::privileges::WorkerUser;

/// All pools of a server.
#[derive(Debug, Default)]
pub(super) struct Applications {
    folder: Option<Folder>,
    pools: Vec<Pool>,
    /// How many pools there have ever been, so that each socket gets a new name.
    opened: u64,
    is_ending: bool,
}

impl Applications {
    /// Opens the pools of the configuration that do not exist yet.
    ///
    /// # Errors
    /// The first pool that cannot be opened. [`keep`](Self::keep) closes those opened before it.
    pub(super) fn prepare(
        &mut self,
        config: &Config,
        user: &WorkerUser,
        now: Instant,
    ) -> Result<(), OperatorError> {
        libraries::check(config)?;
        for application in config.applications() {
            let Some(launch) = application.launch() else { continue };
            let patience = Duration::from_millis(application.timeout_ms);
            if let Some(pool) = self.pools.iter_mut().find(|pool| pool.launch == launch) {
                pool.stay(patience);
                continue;
            }
            let folder = match &mut self.folder {
                Some(folder) => folder,
                none => none.insert(Folder::create(user)?),
            };
            self.opened += 1;
            let as_user = launch.user.clone().or_else(|| user.of_applications());
            let as_user = (as_user.clone(), user.is_shared_with(as_user.as_deref()));
            let path = folder.path().join(format!("{}-{}.sock", self.opened, launch.name()));
            self.pools.push(Pool::open(launch, as_user, path, patience, now)?);
        }
        Ok(())
    }

    /// A configuration for the workers, with addresses in place of commands.
    pub(super) fn settled(&self, config: &Config, workers: usize) -> Config {
        config.settled(workers as u64, |launch| {
            let pool = self.pools.iter().find(|pool| pool.launch == *launch)?;
            Some(Target::Unix(pool.path().to_owned()))
        })
    }

    /// The process tables, by the addresses of the pools.
    pub(super) fn process_tables(&self) -> ProcessTables {
        self.pools.iter().map(|pool| (pool.path().to_owned(), Arc::clone(pool.table()))).collect()
    }

    /// A worker has ended: frees the lanes that it held.
    pub(super) fn forget_worker(&self, pid: i32) {
        self.pools.iter().for_each(|pool| pool.table().forget(pid.unsigned_abs()));
    }

    /// Starts to close the pools that the configuration no longer has.
    pub(super) fn keep(&mut self, config: &Config, now: Instant) {
        let launches: Vec<_> = config.applications().filter_map(Application::launch).collect();
        self.pools
            .iter_mut()
            .filter(|pool| !launches.contains(&pool.launch))
            .for_each(|pool| pool.leave(now));
    }

    /// Starts and kills the managers that are due.
    pub(super) fn advance(&mut self, now: Instant) {
        self.pools.iter_mut().for_each(|pool| pool.advance(now));
        self.pools.retain(|pool| !pool.is_gone());
    }

    /// When [`advance`](Self::advance) has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.pools.iter().filter_map(Pool::deadline).min()
    }

    /// The pipes into which managers print, to poll.
    pub(super) fn outputs(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        self.pools.iter().enumerate().filter_map(|(index, pool)| Some((index, pool.output()?)))
    }

    /// A manager, or one of its processes, has printed something.
    pub(super) fn handle_output(&mut self, index: usize) {
        if let Some(pool) = self.pools.get_mut(index) {
            pool.forward();
        }
    }

    /// A child has ended. Returns whether it was a manager.
    pub(super) fn handle_end(&mut self, pid: i32, ended: Ended, now: Instant) -> bool {
        let Some(pool) = self.pools.iter_mut().find(|pool| pool.is_managed_by(pid)) else { return false };
        pool.handle_end(ended, now);
        true
    }

    /// Stops all pools, when called for the first time. Returns whether all are gone.
    pub(super) fn end(&mut self, now: Instant) -> bool {
        if !std::mem::replace(&mut self.is_ending, true) {
            self.pools.iter_mut().for_each(|pool| pool.stop(now));
        }
        self.pools.retain(|pool| !pool.is_gone());
        self.pools.is_empty()
    }

    /// Removes the folder of the sockets.
    pub(super) fn remove_folder(&self) {
        if let Some(folder) = &self.folder
            && let Err(error) = folder.remove()
        {
            log::warning(format_args!("cannot remove {}: {error}", folder.path().display()));
        }
    }

    /// The application that has started a process, itself or by other processes: their manager adopts those whose parents have
    /// ended.
    pub(super) fn origin_of(&self, process: Pid) -> Option<&str> {
        let mut pid = Some(process.as_raw_nonzero().get());
        for _ in 0..ANCESTORS_MAX {
            let one = pid.filter(|pid| *pid > 1)?;
            if let Some(pool) = self.pools.iter().find(|pool| pool.is_managed_by(one)) {
                return Some(pool.name());
            }
            pid = parent_of(one);
        }
        None
    }

    /// What each pool is called, by the name under which workers know it.
    pub(super) fn names(&self) -> BTreeMap<String, String> {
        self.pools
            .iter()
            .map(|pool| (format!("unix:{}", pool.path().display()), pool.name().to_owned()))
            .collect()
    }

    /// The status of each pool.
    pub(super) fn report(&self) -> Vec<Value> {
        self.pools.iter().map(Pool::report).collect()
    }
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may have blanks and brackets itself. The state follows, and the parent.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Deeper than processes are nested.
const ANCESTORS_MAX: usize = 1 << 12;
