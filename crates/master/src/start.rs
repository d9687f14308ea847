//! From a configuration to a master that can run: all that can fail at the start, before the first fork.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Instant, SystemTime};

use baton_config::{Config, ConfigSource, Server, Site};
use baton_engine::arch::{self, Topology, topology};
use baton_engine::heartbeat::Heartbeats;
use baton_engine::listen::{self, ListenAddress, ListenOptions};
use baton_report::Trouble;
use baton_report::log;
use baton_site::address_count::AddressTable;
use baton_site::guards::RateTable;
use baton_sys::memory_bounds::MemoryBounds;
use baton_sys::signals::SignalQueue;
use baton_telemetry::figures::FigureTable;
use baton_telemetry::metrics::Counters;
use baton_upstream::BacklogNotices;

use super::acme::Acme;
use super::announce::announcement;
use super::applications::Applications;
use super::certificates::{Certificates, Watching};
use super::control::ControlSocket;
use super::documents::Documents;
use super::figures::ProcessFigures;
use super::inherited::InheritedSocket;
use super::kernel_tls::kernel_sealing;
use super::listeners::{Listeners, SocketSetup, listen_addresses};
use super::logs::Logs;
use super::management::{Connections, ServerMetrics};
use super::master::Master;
use super::members::Members;
use super::mover::Mover;
use super::origins::Origins;
use super::phase::Phase;
use super::privileges::{WorkerUser, limits};
use super::replaceable_file::PidFile;
use super::siblings::Siblings;
use super::ticket_keys::TicketKeys;
use super::upgrade::InheritedSockets;
use super::workers::Workers;
use super::{cache_folder, cache_memory, descriptors, signals};

/// Binds, opens and allocates what the server needs, except sockets that another server has left to it.
///
/// # Errors
/// The first failure, with its likely cause.
pub(super) fn prepare(
    mut config: Config,
    source: ConfigSource,
    inherited_sockets: InheritedSockets,
) -> Result<Master, Trouble> {
    let started_at = SystemTime::now();
    let listed_nodes = config.cluster.nodes.clone();
    let mut members = Members::new(limits(&config), Instant::now());
    members.restore(config.members_settings()?);
    config.cluster.nodes = members.merged(&config.cluster);
    descriptors::raise_limit();
    let mut tuning = config.tuning();
    let cpus = baton_sys::process::allowed_cpus()
        .map_err(|error| Trouble::of("ask which CPUs there are", &error))?;
    let topology = topology(&tuning, &cpus);
    let cache_memory = cache_memory::decide(
        config.cache.memory_bytes_max,
        &MemoryBounds::of_this_process(),
        topology.processes,
    );
    tuning.cache.memory_bytes_max = cache_memory.bytes;
    if let Some(advice) = cache_memory.advice {
        log::warning(advice);
    }
    let descriptors = descriptors::budget(&config, &tuning, &topology);
    tuning.clients_max = descriptors.clients_max;
    tuning.cache.files_max = descriptors.files_max;
    if let Some(advice) = descriptors.advice {
        log::warning(advice);
    }
    let certificates = Certificates::read(&config)?;
    let kernel_sealing = kernel_sealing(&config);
    tuning.kernel_tls = kernel_sealing.is_on;
    let ticket_keys = TicketKeys::begin(inherited_sockets.ticket_secrets, Instant::now())?;
    let options = ListenOptions {
        backlog: i32::try_from(config.send.backlog).unwrap_or(i32::MAX),
        reuse_port: false,
        defer_accept_s: tuning.defer_accept_s,
        send_buffer_bytes: tuning.socket_send_buffer_bytes,
    };
    let cpu_of_listener = tuning.steering.then(|| topology.cpu_of_listener()).transpose();
    let cpu_of_listener = cpu_of_listener.unwrap_or_else(|why| {
        log::warning(format_args!("`send.listener_per_cpu` has no effect: {why}"));
        None
    });
    let setup =
        SocketSetup { sharing: topology.listeners, processes: topology.processes, cpu_of_listener, options };
    let inherited = baton_sys::activation::inherited()
        .map_err(|error| Trouble::of("take the sockets that were passed", &error))?;
    let mut passed =
        inherited.into_iter().map(InheritedSocket::from_service_manager).collect::<Result<Vec<_>, _>>()?;
    passed.extend(inherited_sockets.sockets);
    let (mut listeners, unused) = Listeners::open(setup, &listen_addresses(&config), passed)?;
    for address in unused {
        log::warning(format_args!(
            "a socket for {address} was passed, but no site listens there: it is not used"
        ));
    }
    let heartbeats = Heartbeats::allocate(topology.processes, &tuning)
        .map_err(|error| Trouble::of("allocate the heartbeats", &error))?;
    let notices = match topology.processes * arch::loops(&tuning) {
        1 => BacklogNotices::default(),
        _ => BacklogNotices::allocate().map_err(|error| Trouble::of("allocate notices", &error))?,
    };
    let figures = FigureTable::allocate(topology.processes)
        .map_err(|error| Trouble::of("allocate the table of figures", &error))?;
    let mut origins = Origins::allocate(topology.processes, inherited_sockets.drained_origins)
        .map_err(|error| Trouble::of("allocate the table of origins", &error))?;
    origins.begin(&config);
    let rates =
        RateTable::allocate().map_err(|error| Trouble::of("allocate the table of clients' rates", &error))?;
    let addresses = AddressTable::allocate(topology.processes)
        .map_err(|error| Trouble::of("allocate the table of clients' connections", &error))?;
    let mover = Mover::new(&config, Instant::now())
        .map_err(|error| Trouble::of("open sockets for the mover", &error))?;
    let equipment =
        Equipment::gather(&config, &topology, inherited_sockets.admin).inspect_err(|_| listeners.close())?;
    Ok(Master {
        announcement: announcement(
            &config,
            &tuning,
            &topology,
            &listeners,
            &equipment.user,
            &equipment.control,
            &equipment.admin,
        ),
        pid: std::process::id(),
        started: Instant::now(),
        started_at,
        // A server in the foreground of a terminal ends with it.
        hangup_ends: matches!(source, ConfigSource::CommandLine(_)) && io::stdin().is_terminal(),
        source,
        tuning,
        cache_memory: cache_memory.told,
        descriptors: descriptors.told,
        kernel_tls: kernel_sealing.told,
        listeners,
        certificates,
        watching: Watching::new(Instant::now()),
        acme: Acme::new(limits(&config), Instant::now()),
        documents: Documents::new(limits(&config), Instant::now()),
        members,
        listed_nodes,
        ticket_keys,
        config,
        user: equipment.user,
        logs: equipment.logs,
        applications: Applications::default(),
        notices,
        workers: Workers::new(
            topology.cpu_of_process,
            equipment.counters,
            heartbeats,
            origins.table(),
            figures,
            addresses,
        ),
        siblings: Siblings::open(),
        mover,
        origins,
        rates,
        figures,
        process_figures: ProcessFigures::default(),
        next_check: Instant::now(),
        signals: equipment.signals,
        control: equipment.control.ok(),
        pid_file: equipment.pid_file,
        admin: equipment.admin,
        terminal: equipment.terminal,
        connections: Connections::default(),
        accept_paused_until: None,
        phase: Phase::Starting,
        predecessor: None,
        successor: None,
        reload: None,
        reload_again: Vec::new(),
        last_reload: None,
        generations: 0,
        status_collection: None,
        pending_purges: Vec::new(),
        pending_whys: BTreeMap::new(),
        purge_retry_due: None,
        tickets: 0,
        metrics: ServerMetrics {
            start_time_seconds: started_at
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs(),
            ..ServerMetrics::default()
        },
        failure: None,
    })
}

/// What a server has beside its listeners.
#[derive(Debug)]
pub(super) struct Equipment {
    /// The user as which the workers run.
    pub(super) user: WorkerUser,
    /// The control socket, or why there is none.
    pub(super) control: Result<ControlSocket, String>,
    /// Admin listeners.
    pub(super) admin: Vec<(ListenAddress, OwnedFd)>,
    pid_file: Option<PidFile>,
    logs: Logs,
    counters: Vec<Counters>,
    signals: SignalQueue,
    terminal: OwnedFd,
}

impl Equipment {
    fn gather(
        config: &Config,
        topology: &Topology,
        mut left_admin: Vec<(ListenAddress, OwnedFd)>,
    ) -> Result<Self, Trouble> {
        let Server { user, group, .. } = &config.server;
        let user =
            WorkerUser::choose(user.as_deref(), group.as_deref(), config.sites.iter().any(Site::has_acme))?;
        if let WorkerUser::Same(Some(advice)) = &user {
            log::warning(advice);
        }
        cache_folder::prepare(config, &user, topology.processes)?;
        let logs = Logs::open(config)?;
        let counters = Counters::allocate(topology.processes)
            .map_err(|error| Trouble::of("allocate the counters", &error))?;
        let signals = signals::queue().map_err(|error| Trouble::of("receive signals", &error))?;
        let open = |address| open_admin(address, &mut left_admin);
        let admin = config.admin.listen.iter().flatten().map(open).collect::<Result<_, _>>()?;
        let control = ControlSocket::open(&config.server.control_socket)?;
        let last = || {
            let pid_file = config.server.pid_file.as_deref().map(PidFile::write).transpose()?;
            let terminal = io::stderr().as_fd().try_clone_to_owned();
            let terminal = terminal.map_err(|error| Trouble::of("keep standard error", &error))?;
            logs.take_over_stderr().map_err(|error| Trouble::of("write to the error log", &error))?;
            Ok((pid_file, terminal))
        };
        let (pid_file, terminal) = last().inspect_err(|_| {
            if let Ok(door) = &control {
                door.remove();
            }
        })?;
        Ok(Self { user, control, admin, pid_file, logs, counters, signals, terminal })
    }
}

/// Opens an admin listener, or takes the inherited one for the address.
fn open_admin(
    address: &ListenAddress,
    left: &mut Vec<(ListenAddress, OwnedFd)>,
) -> Result<(ListenAddress, OwnedFd), Trouble> {
    let options =
        ListenOptions { backlog: 32, reuse_port: false, defer_accept_s: 0, send_buffer_bytes: None };
    let bound = match (left.iter().position(|(known, _)| known == address), address) {
        (Some(index), _) => Ok(left.swap_remove(index).1),
        (None, ListenAddress::Unix(path)) => {
            listen::remove_stale_socket(path).and_then(|()| listen::bind(address, &options))
        }
        (None, ListenAddress::Tcp(_)) => listen::bind(address, &options),
    };
    let bound = bound.and_then(|socket| Ok((listen::address_of(&socket)?, socket)));
    bound.map_err(|error| super::listen_error::cannot_listen(address, &error))
}
