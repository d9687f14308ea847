//! How a worker divides its descriptors if the limit is below what the configuration asks for.
//!
//! ```text
//!   RLIMIT_NOFILE ── what the worker needs for itself ── at least half: clients ── half of the rest: cached files
//!                                                                             └── applications, bodies, downloads
//! ```
//!
//! Clients beyond their part wait in the queue of the listener. So an accepted client finds the second descriptor that
//! it needs, for a file, an application or a body. Cached files are a reserve, too: the worker closes them when an
//! operation finds no descriptor ([`baton_sys::descriptors`]).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use baton_config::Config;
use baton_engine::Tuning;
use baton_engine::arch::{self, ListenerSharing, Topology};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What each worker may use its descriptors for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Most clients at a time.
    pub clients_max: usize,
    /// Most open files in each of the cache's two tables: files in memory, and others.
    pub files_max: usize,
    /// The limit and what follows from it, for the status.
    pub told: String,
    /// A warning for the user.
    pub advice: Option<String>,
}

/// The shares of this configuration's workers if they were started now.
pub fn budget(config: &Config, tuning: &Tuning, topology: &Topology) -> Budget {
    let wanted = Wanted {
        own: own(config, tuning, topology),
        clients: config.limits.connections_max,
        files: config.cache.files_max,
    };
    share_out(raised_limit(), &wanted)
}

/// Raises the soft limit to the hard one, for this process and its workers. The usual soft limit of 1024 protects
/// programs that use select(2); Baton does not.
pub(super) fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If it fails, the limit stays as it is, and is respected.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// The limit after [`raise_limit`].
fn raised_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// Descriptors that a configuration asks for.
struct Wanted {
    own: u64,
    clients: u64,
    files: u64,
}

fn share_out(limit: Option<u64>, wanted: &Wanted) -> Budget {
    let Wanted { own, clients, files } = *wanted;
    let configured = |told| Budget { clients_max: size(clients), files_max: size(files), told, advice: None };
    let Some(limit) = limit else { return configured("no limit".into()) };
    let needed = own.saturating_add(clients).saturating_add(files.saturating_mul(PER_CACHED_FILE));
    if needed <= limit {
        return configured(format!("{limit} per worker"));
    }
    let rest = limit.saturating_sub(own);
    let beside_all_files = rest.saturating_sub(files.saturating_mul(PER_CACHED_FILE));
    let clients_max = clients.min(beside_all_files.max(rest / 2)).max(1);
    let files_max = files.min(rest.saturating_sub(clients_max) / PER_CACHED_FILE);
    Budget {
        clients_max: size(clients_max),
        files_max: size(files_max),
        told: format!("{limit} per worker: connections_max = {clients_max}, files_max = {files_max}"),
        advice: Some(format!(
            "too few descriptors: a worker may open {limit}, but connections_max = {clients} and files_max = {files} can \
             need {needed}. It goes on with connections_max = {clients_max} and files_max = {files_max}. Raise the limit \
             (`ulimit -Hn {needed}`, or LimitNOFILE={needed} in the systemd unit), or set these values"
        )),
    }
}

/// About how many descriptors a worker needs for itself.
fn own(config: &Config, tuning: &Tuning, topology: &Topology) -> u64 {
    let addresses = config.addresses().len();
    let listeners = match topology.listeners {
        ListenerSharing::Shared => addresses,
        // Those of other workers, too, while those are down.
        ListenerSharing::PerProcess => addresses * topology.processes,
    };
    let started = config.applications().filter(|application| !application.command.is_empty()).count();
    let loops = arch::loops(tuning);
    (OTHERS + listeners + folders(config).len() + started * PER_APPLICATION + loops * PER_LOOP) as u64
}

/// The folders that a plan of this configuration keeps open.
fn folders(config: &Config) -> HashSet<&Path> {
    let sites = config.sites.iter().filter_map(|site| site.files.root.as_deref());
    let routes = config.sites.iter().flat_map(|site| &site.routes);
    let routes = routes.filter_map(|route| route.files.root.as_deref());
    let named = config.applications().flat_map(|application| {
        let internal = application.internal_files.iter().map(|(_, folder)| folder.as_path());
        application.named_files.iter().map(PathBuf::as_path).chain(internal)
    });
    sites.chain(routes).chain(named).collect()
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Each of the cache's two tables has the bound. As many descriptors again remain for applications, bodies and
/// downloads.
const PER_CACHED_FILE: u64 = 4;

/// Standard streams, logs, the channel to the master, and files that are open only briefly.
const OTHERS: usize = 16;

/// An interest set, a copy of it, an event descriptor for messages and one for jobs.
const PER_LOOP: usize = 4;

/// The process table of an application.
const PER_APPLICATION: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Wanted = Wanted { own: 24, clients: 10_000, files: 2_000 };

    #[test]
    fn a_limit_that_suffices_changes_nothing() {
        for limit in [None, Some(18_024), Some(1 << 20)] {
            let budget = share_out(limit, &USUAL);
            assert_eq!((budget.clients_max, budget.files_max, budget.advice), (10_000, 2_000, None));
        }
    }

    #[test]
    fn what_there_is_is_shared_out() {
        let shares = |limit| {
            let budget = share_out(Some(limit), &USUAL);
            (budget.clients_max, budget.files_max)
        };
        assert_eq!(shares(18_023), (9_999, 2_000));
        assert_eq!(shares(4_096), (2_036, 509));
        assert_eq!(shares(1_024), (500, 125));
        assert_eq!(shares(64), (20, 5));
        assert_eq!(shares(24), (1, 0), "too few for the server itself");
        let few = Wanted { own: 24, clients: 10, files: 2_000 };
        let budget = share_out(Some(1_024), &few);
        assert_eq!((budget.clients_max, budget.files_max), (10, 247));
    }

    /// Goal: no share exceeds what there is, and a higher limit never gives less.
    #[test]
    fn shares_fit_and_grow_with_the_limit() {
        let mut before = (0, 0);
        for limit in 30..20_000 {
            let budget = share_out(Some(limit), &USUAL);
            assert!(24 + budget.clients_max + 2 * budget.files_max <= limit as usize, "{limit}");
            assert!((budget.clients_max, budget.files_max) >= before, "{limit}");
            before = (budget.clients_max, budget.files_max);
        }
    }

    #[test]
    fn advice_names_what_counts_and_what_would_do() {
        let advice = share_out(Some(300), &USUAL).advice.unwrap();
        assert!(advice.contains("a worker may open 300"), "{advice}");
        assert!(advice.contains("goes on with connections_max = 138 and files_max = 34"), "{advice}");
        assert!(advice.contains("LimitNOFILE=18024"), "{advice}");
    }
}
