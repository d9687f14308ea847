//! From a configuration to a master that can run: everything that a start-up may fail for, before the first fork.

use std::fs;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Instant, SystemTime};

use baton_engine::arch::{ListenerSharing, Topology, topology};
use baton_engine::listen::{self, ListenAddress, ListenOptions};
use baton_engine::metrics::Counters;
use baton_sys::signals::SignalQueue;

use super::announce::announcement;
use super::callers::Callers;
use super::control::Doorway;
use super::crew::Crew;
use super::exposition::Figures;
use super::listeners::{Listeners, Manner};
use super::logs::Logs;
use super::master::Master;
use super::phase::Phase;
use super::privileges::WorkerUser;
use super::reload::listen_addresses;
use super::trouble::Trouble;
use super::{descriptors, log, signals};
use crate::config::{Config, ConfigSource};

/// Binds, opens and allocates what the server needs.
///
/// # Errors
/// The first thing that stands in the way.
pub(super) fn prepare(config: Config, source: ConfigSource) -> Result<Master, Trouble> {
    let started_at = SystemTime::now();
    if let Some(advice) =
        descriptors::raise_limit(config.limits.connections_max as usize, config.cache.files_max as usize)
    {
        log::warning(advice);
    }
    let tuning = config.tuning();
    let cpus = baton_sys::process::allowed_cpus()
        .map_err(|error| Trouble::of("ask which CPUs there are", &error))?;
    let topology = topology(&tuning, &cpus);
    let options = ListenOptions {
        backlog: i32::try_from(config.send.backlog).unwrap_or(i32::MAX),
        reuse_port: false,
        defer_accept_s: tuning.defer_accept_s,
        send_buffer_bytes: tuning.socket_send_buffer_bytes,
    };
    let manner = Manner {
        sharing: topology.listeners,
        processes: topology.processes,
        steered: tuning.steering && process_n_is_on_cpu_n(&topology),
        options,
    };
    let inherited = baton_sys::activation::inherited()
        .map_err(|error| Trouble::of("take the sockets that were passed", &error))?;
    let (mut listeners, unused) = Listeners::open(manner, &listen_addresses(&config), inherited)?;
    for address in unused {
        log::warning(format_args!(
            "a socket for {address} was passed, but no site listens there: it is not used"
        ));
    }
    let equipment = Equipment::gather(&config, &topology).inspect_err(|_| listeners.close())?;
    Ok(Master {
        announcement: announcement(&config, &tuning, &topology, &listeners, &equipment),
        pid: std::process::id(),
        started: Instant::now(),
        started_at,
        // A server that somebody started by hand is not to outlive the terminal.
        hangup_ends: matches!(source, ConfigSource::CommandLine(_)) && io::stdin().is_terminal(),
        source,
        tuning,
        listeners,
        config,
        user: equipment.user,
        logs: equipment.logs,
        crew: Crew::new(topology.cpu_of_process, equipment.counters),
        signals: equipment.signals,
        control: equipment.control.ok(),
        admin: equipment.admin,
        terminal: equipment.terminal,
        callers: Callers::default(),
        doors_shut_until: None,
        phase: Phase::Starting,
        reload: None,
        reload_again: Vec::new(),
        last_reload: None,
        generations: 0,
        survey: None,
        tickets: 0,
        figures: Figures {
            start_time_seconds: started_at
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs(),
            ..Figures::default()
        },
        failure: None,
    })
}

/// What a server has beside its listeners.
#[derive(Debug)]
pub(super) struct Equipment {
    /// As whom the workers run.
    pub(super) user: WorkerUser,
    /// The control socket, or why there is none.
    pub(super) control: Result<Doorway, String>,
    /// Admin listeners.
    pub(super) admin: Vec<(ListenAddress, OwnedFd)>,
    logs: Logs,
    counters: Vec<Counters>,
    signals: SignalQueue,
    terminal: OwnedFd,
}

impl Equipment {
    fn gather(config: &Config, topology: &Topology) -> Result<Self, Trouble> {
        let user = WorkerUser::choose(config.server.user.as_deref(), config.server.group.as_deref())?;
        if let WorkerUser::Same(Some(advice)) = &user {
            log::warning(advice);
        }
        let logs = Logs::open(&config.log)?;
        let counters = Counters::allocate(topology.processes)
            .map_err(|error| Trouble::of("allocate the counters", &error))?;
        let signals = signals::queue().map_err(|error| Trouble::of("receive signals", &error))?;
        let admin = config.admin.listen.iter().flatten().map(open_admin).collect::<Result<_, _>>()?;
        let control = Doorway::open(&config.server.control_socket)?;
        let last = || {
            if let Some(path) = &config.server.pid_file {
                write_pid(path)?;
            }
            let terminal = io::stderr().as_fd().try_clone_to_owned();
            let terminal = terminal.map_err(|error| Trouble::of("keep standard error", &error))?;
            logs.take_over_stderr().map_err(|error| Trouble::of("write to the error log", &error))?;
            Ok(terminal)
        };
        let terminal = last().inspect_err(|_| {
            if let Ok(door) = &control {
                door.remove();
            }
        })?;
        Ok(Self { user, control, admin, logs, counters, signals, terminal })
    }
}

fn process_n_is_on_cpu_n(topology: &Topology) -> bool {
    topology.listeners == ListenerSharing::PerProcess
        && topology.cpu_of_process.iter().enumerate().all(|(process, cpu)| *cpu == Some(process))
}

fn open_admin(address: &ListenAddress) -> Result<(ListenAddress, OwnedFd), Trouble> {
    let options =
        ListenOptions { backlog: 32, reuse_port: false, defer_accept_s: 0, send_buffer_bytes: None };
    let bound = match address {
        ListenAddress::Unix(path) => super::listeners::remove_stale_socket(path),
        ListenAddress::Tcp(_) => Ok(()),
    };
    let bound = bound.and_then(|()| {
        let socket = listen::bind(address, &options)?;
        Ok((super::listeners::address_of(&socket)?, socket))
    });
    bound.map_err(|error| Trouble::listening(address, &error))
}

fn write_pid(path: &Path) -> Result<(), Trouble> {
    fs::write(path, format!("{}\n", std::process::id())).map_err(|error| {
        Trouble::of(format_args!("write the pid file {}", path.display()), &error).about_file(path, &error)
    })
}
