//! A worker process: becomes who it is to be, makes its plan, and serves by it until the master says otherwise.
//!
//! One thread, the first, belongs to the engine; another takes the master's [orders](super::orders).

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::Arc;

use baton_config::{Config, Resources, Rosters, Target};
use baton_content::Roots;
use baton_engine::heartbeat::Heartbeats;
use baton_engine::listen::Listener;
use baton_engine::metrics::{Counters, Metric};
use baton_engine::{LogSettings, Plan, Steering, Tuning};
use baton_gateway::{Claim, TemporaryCounters, TemporarySpace};
use baton_report::{Trouble, log};
use baton_sys::process;
use rustix::process::Signal;

use super::channel::{self, Report};
use super::orders::Desk;
use super::privileges::WorkerUser;

/// All that a worker begins with.
#[derive(Debug)]
pub(super) struct Post {
    /// The process that started it.
    pub(super) master_pid: u32,
    /// As whom it runs.
    pub(super) user: WorkerUser,
    /// The CPU that it is bound to, if any.
    pub(super) cpu: Option<usize>,
    /// What it serves.
    pub(super) config: Config,
    /// The processes of the applications in it that the server has started.
    pub(super) rosters: Rosters,
    /// How it does its work.
    pub(super) tuning: Tuning,
    /// Of each of the configuration's addresses, in order, the id of its listener.
    pub(super) listener_ids: Vec<usize>,
    /// The listeners.
    pub(super) listeners: Vec<Arc<Listener>>,
    /// Where it counts.
    pub(super) counters: Counters,
    /// Where each worker does, this one too.
    pub(super) all_counters: Vec<Counters>,
    /// Where it shows that its loops move.
    pub(super) heartbeats: Heartbeats,
    /// Where it logs requests.
    pub(super) log: Option<LogSettings>,
}

/// Serves until the process is to end. `channel` is the worker's end.
pub(super) fn serve(post: io::Result<Box<Post>>, channel: OwnedFd) -> ExitCode {
    let channel = Arc::new(channel);
    let served =
        post.map_err(|error| format!("cannot begin: {error}")).and_then(|post| work(*post, &channel));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If the master is gone there is nobody left to tell.
            let _ = channel::send(&channel, &Report::Failed { error }, &[]);
            ExitCode::FAILURE
        }
    }
}

fn work(post: Post, channel: &Arc<OwnedFd>) -> Result<(), String> {
    become_worker(&post)?;
    let remarks = |remark: std::fmt::Arguments<'_>| log::warning(remark);
    let own = TemporaryCounters {
        bytes: post.counters.cell(Metric::TemporaryBytes),
        refused: post.counters.cell(Metric::TemporaryRefused),
    };
    let all = post.all_counters.iter().map(|counters| counters.cell(Metric::TemporaryBytes)).collect();
    let space = TemporarySpace::new(own, all, remarks);
    let resources = Resources { rosters: post.rosters, roots: Roots::default(), space };
    let plan = make_plan(&post.config, &post.listener_ids, &resources, &post.user)?;
    let steering = Arc::new(Steering::new());
    steering.hold(claims(&post.config, &resources.rosters));
    let desk = Desk::new(
        Arc::clone(channel),
        post.user,
        Arc::clone(&steering),
        Arc::clone(&plan),
        post.listeners.clone(),
        resources,
    );
    std::thread::Builder::new()
        .name("orders".into())
        .spawn(move || desk.work())
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    channel::send(channel, &Report::Ready, &[]).map_err(|error| format!("the master is gone: {error}"))?;
    baton_engine::run(baton_engine::Worker {
        tuning: post.tuning,
        plan,
        listeners: post.listeners,
        counters: post.counters,
        heartbeats: post.heartbeats,
        log: post.log,
        steering,
        remarks,
    })
    .map_err(|error| format!("the engine failed: {error}"))
}

/// Gives up what a worker must not have.
fn become_worker(post: &Post) -> Result<(), String> {
    // The master's signals stay blocked, but for the one that says that the master is dead.
    baton_sys::signals::unblock(&[Signal::TERM.as_raw()])
        .map_err(|error| format!("cannot unblock SIGTERM: {error}"))?;
    post.user.assume().map_err(|error| format!("cannot become another user: {error}"))?;
    // After that, since the kernel forgets this wish when a process changes its user.
    process::die_with_parent().map_err(|error| format!("cannot follow the master: {error}"))?;
    if std::os::unix::process::parent_id() != post.master_pid {
        return Err("the master has died".into());
    }
    match post.cpu {
        Some(cpu) => process::pin_to_cpu(cpu).map_err(|error| format!("cannot bind to CPU {cpu}: {error}")),
        None => Ok(()),
    }
}

/// What keeps the processes that a configuration is about.
pub(super) fn claims(config: &Config, rosters: &Rosters) -> Vec<Claim> {
    let addresses = config.applications().filter_map(|application| application.to.as_ref());
    let rosters = addresses.filter_map(|address| match address {
        Target::Unix(path) => rosters.get(path),
        Target::Tcp(_) => None,
    });
    rosters.filter_map(Claim::new).collect()
}

/// What a configuration means, with the trees opened. `listener_ids` are those of its addresses, in order.
///
/// # Errors
/// What cannot be opened or read, and why that is likely so.
pub(super) fn make_plan(
    config: &Config,
    listener_ids: &[usize],
    resources: &Resources,
    user: &WorkerUser,
) -> Result<Arc<Plan>, String> {
    let ids: HashMap<_, _> = config.addresses().into_iter().zip(listener_ids.iter().copied()).collect();
    config.plan(&ids, resources).map(Arc::new).map_err(|error| {
        let denied = error.kind() == io::ErrorKind::PermissionDenied;
        match user.remedy_if_denied().filter(|_| denied) {
            Some(remedy) => Trouble::new(error.to_string()).remedy(remedy).to_string(),
            None => error.to_string(),
        }
    })
}
