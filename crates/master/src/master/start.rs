//! From a configuration to a master that can run: all that can fail at the start, before the first fork.

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Instant, SystemTime};

use baton_config::{Config, ConfigSource, Server, Site};
use baton_engine::arch::{self, Topology, topology};
use baton_engine::heartbeat::Heartbeats;
use baton_engine::listen::{self, ListenAddress, ListenOptions};
use baton_report::OperatorError;
use baton_report::log;
use baton_site::address_count::AddressTable;
use baton_site::guards::RateTable;
use baton_sys::memory_bounds::MemoryBounds;
use baton_telemetry::figures::FigureTable;
use baton_telemetry::metrics::Counters;
use baton_upstream::BacklogNotices;

use super::Master;
use crate::acme::Acme;
use crate::announce::announcement;
use crate::applications::Applications;
use crate::cache_pressure::CachePressure;
use crate::certificates::{Certificates, WatchedCertificates};
use crate::control::ControlSocket;
use crate::documents::Documents;
use crate::failover::Failover;
use crate::figures::ProcessFigures;
use crate::handoff_agent::HandoffAgent;
use crate::inherited::InheritedSocket;
use crate::kernel_tls::kernel_sealing;
use crate::listeners::{Listeners, SocketSetup, listen_addresses};
use crate::logs::Logs;
use crate::management::Endpoints;
use crate::members::Members;
use crate::origins::Origins;
use crate::phase::Phase;
use crate::privileges::{WorkerUser, limits};
use crate::purges::Purges;
use crate::reloads::Reloads;
use crate::replaceable_file::PidFile;
use crate::route_questions::RouteQuestions;
use crate::siblings::Siblings;
use crate::signals::Signals;
use crate::startup::{Startup, Terminal};
use crate::status_collection::StatusCollection;
use crate::ticket_keys::TicketKeys;
use crate::upgrade::{InheritedSockets, Upgrade};
use crate::watchdog::Watchdog;
use crate::workers::{SharedTables, Workers};
use crate::{cache_folder, cache_memory, descriptors};

/// Binds, opens and allocates what the server needs, except sockets that another server has left to it.
///
/// # Errors
/// The first failure, with its likely cause.
pub(crate) fn prepare(
    mut config: Config,
    source: ConfigSource,
    inherited_sockets: InheritedSockets,
) -> Result<Master, OperatorError> {
    let began_at = SystemTime::now();
    let listed = config.cluster.nodes.clone();
    let mut members = Members::new(listed, config.members_settings()?, limits(&config), Instant::now());
    config.cluster.nodes = members.merged(&config.cluster);
    descriptors::raise_limit();
    let mut tuning = config.tuning();
    let cpus = baton_sys::process::allowed_cpus()
        .map_err(|error| OperatorError::of("ask which CPUs there are", &error))?;
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
    tuning.kernel_tls = kernel_sealing.is_on();
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
        .map_err(|error| OperatorError::of("take the sockets that were passed", &error))?;
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
        .map_err(|error| OperatorError::of("allocate the heartbeats", &error))?;
    let notices = match topology.processes * arch::loops(&tuning) {
        1 => BacklogNotices::default(),
        _ => BacklogNotices::allocate().map_err(|error| OperatorError::of("allocate notices", &error))?,
    };
    let figures = FigureTable::allocate(topology.processes)
        .map_err(|error| OperatorError::of("allocate the table of figures", &error))?;
    let mut origins = Origins::allocate(topology.processes, inherited_sockets.drained_origins)
        .map_err(|error| OperatorError::of("allocate the table of origins", &error))?;
    origins.begin(&config);
    let rates = RateTable::allocate()
        .map_err(|error| OperatorError::of("allocate the table of clients' rates", &error))?;
    let addresses = AddressTable::allocate(topology.processes)
        .map_err(|error| OperatorError::of("allocate the table of clients' connections", &error))?;
    let handoff_agent = HandoffAgent::new(&config, Instant::now())
        .map_err(|error| OperatorError::of("open sockets for the handoff agent", &error))?;
    // A server in the foreground of a terminal ends with it.
    let hangup_ends = matches!(source, ConfigSource::CommandLine(_)) && io::stdin().is_terminal();
    let equipment = Equipment::gather(&config, &topology, hangup_ends, inherited_sockets.admin)
        .inspect_err(|_| listeners.close())?;
    let announcement = announcement(
        &config,
        &tuning,
        &topology,
        &listeners,
        &equipment.user,
        &equipment.control,
        &equipment.admin,
    );
    let tables = SharedTables { origins: origins.table(), figures, addresses, rates, notices };
    Ok(Master {
        terminal: Terminal::new(equipment.terminal, announcement),
        startup: Startup {
            pid: std::process::id(),
            source,
            tuning,
            user: equipment.user,
            cache_memory: cache_memory.told,
            kernel_tls: kernel_sealing.told(),
            descriptors: descriptors.told,
            began: Instant::now(),
            began_at,
        },
        listeners,
        certificates: WatchedCertificates::new(certificates, Instant::now()),
        acme: Acme::new(limits(&config), Instant::now()),
        documents: Documents::new(limits(&config), Instant::now()),
        members,
        ticket_keys,
        config,
        logs: equipment.logs,
        applications: Applications::default(),
        workers: Workers::new(topology.cpu_of_process, equipment.counters, heartbeats, tables),
        siblings: Siblings::open(),
        handoff_agent,
        origins,
        process_figures: ProcessFigures::default(),
        watchdog: Watchdog::new(Instant::now()),
        failover: Failover::new(topology.processes),
        signals: equipment.signals,
        endpoints: Endpoints::new(equipment.control.ok(), equipment.admin),
        pid_file: equipment.pid_file,
        phase: Phase::Starting,
        upgrade: Upgrade::new(None),
        reloads: Reloads::default(),
        status_collection: StatusCollection::default(),
        purges: Purges::default(),
        cache_pressure: CachePressure::begin(Instant::now()),
        route_questions: RouteQuestions::default(),
        failure: None,
    })
}

/// What a server has beside its listeners.
#[derive(Debug)]
struct Equipment {
    /// The user as which the workers run.
    user: WorkerUser,
    /// The control socket, or why there is none.
    control: Result<ControlSocket, String>,
    /// Admin listeners.
    admin: Vec<(ListenAddress, OwnedFd)>,
    pid_file: Option<PidFile>,
    logs: Logs,
    counters: Vec<Counters>,
    signals: Signals,
    terminal: OwnedFd,
}

impl Equipment {
    fn gather(
        config: &Config,
        topology: &Topology,
        hangup_ends: bool,
        mut left_admin: Vec<(ListenAddress, OwnedFd)>,
    ) -> Result<Self, OperatorError> {
        let Server { user, group, .. } = &config.server;
        let user =
            WorkerUser::choose(user.as_deref(), group.as_deref(), config.sites.iter().any(Site::has_acme))?;
        if let WorkerUser::Same(Some(advice)) = &user {
            log::warning(advice);
        }
        cache_folder::prepare(config, &user, topology.processes)?;
        let logs = Logs::open(config)?;
        let counters = Counters::allocate(topology.processes)
            .map_err(|error| OperatorError::of("allocate the counters", &error))?;
        let signals =
            Signals::queue(hangup_ends).map_err(|error| OperatorError::of("receive signals", &error))?;
        let open = |address| open_admin(address, &mut left_admin);
        let admin = config.admin.listen.iter().flatten().map(open).collect::<Result<_, _>>()?;
        let control = ControlSocket::open(&config.server.control_socket)?;
        let last = || {
            let pid_file = config.server.pid_file.as_deref().map(PidFile::write).transpose()?;
            let terminal = io::stderr().as_fd().try_clone_to_owned();
            let terminal = terminal.map_err(|error| OperatorError::of("keep standard error", &error))?;
            logs.take_over_stderr().map_err(|error| OperatorError::of("write to the error log", &error))?;
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
) -> Result<(ListenAddress, OwnedFd), OperatorError> {
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
    bound.map_err(|error| crate::listen_error::cannot_listen(address, &error))
}
