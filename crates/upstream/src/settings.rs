//! An application as configured.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_http::origin::RESPONSE_HEAD_BYTES_MAX;
use baton_pool::{Chunk, ChunkPool};
use baton_process_table::{ProcessTable, socket_path};
use baton_tls::OriginPolicy;

use crate::origins::OriginRecord;
use crate::{Address, BacklogNotice, ProxyVersion, StreamedBodies, TemporaryFiles, TemporarySpace};

/// An application, checked. All loops that use it share it; each has a pool of connections of its own.
#[derive(Debug)]
pub struct Application {
    settings: Settings,
    /// Distinguishes otherwise equal applications of an old and a new configuration.
    id: u64,
    /// Memory for bodies of requests that its processes read, once one has said that it does.
    chunks: Mutex<Option<ChunkPool>>,
}

/// Where the processes of an application listen.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// All processes share one address, as those of php-fpm do. Baton does not know the processes.
    Shared(Address),
    /// Each process has an address of its own: the one in slot 3 of the table listens at `{prefix}.3`. It never gets more
    /// connections than it answers requests at a time, so that a request goes to an idle process or waits.
    Members {
        /// Which processes there are. All loops of all workers share it.
        table: Arc<ProcessTable>,
        /// How the paths of the sockets begin.
        prefix: PathBuf,
    },
}

/// The protocol of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// FastCGI 1.0.
    FastCgi,
    /// SCGI: always the plain transport, and a connection per request.
    Scgi,
    /// HTTP/1.1: always the plain transport.
    Http1,
}

/// The transport of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportChoice {
    /// The best that the application takes up.
    Auto,
    /// Through the socket, as FastCGI says.
    Plain,
    /// Through memory shared with the application. Offered with every request; it may decline.
    Shm,
    /// On the client's own socket where that can be handed over. Offered with every such request; it may decline.
    PassFd,
}

/// Which applications [`TransportChoice::Auto`] trusts with clients' sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Any application.
    All,
    /// Applications at whose Unix socket one of these users listens, by their ids.
    Users(Vec<u32>),
}

/// The settings of an application. Times are in milliseconds.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its name in reports.
    pub name: String,
    /// Its name as a node of the cluster, if it is one.
    pub node: Option<String>,
    /// Where its processes listen.
    pub endpoint: Endpoint,
    /// Its protocol.
    pub protocol: Protocol,
    /// TLS on its connections: what its certificate must be.
    pub tls: Option<OriginPolicy>,
    /// Whether each connection begins with the PROXY protocol. It is then used for one client only.
    pub send_proxy: Option<ProxyVersion>,
    /// The transport of its answers.
    pub transport: TransportChoice,
    /// Whether `TransportChoice::Auto` trusts it with clients' sockets.
    pub passfd_trust: Trust,
    /// By which loops tell each other of connections in the application's backlog, if there are several loops.
    pub backlog_notice: Option<BacklogNotice>,
    /// Most connections of one loop, 1 to [`CONNECTIONS_LIMIT`].
    pub connections_max: usize,
    /// Most tunnels of one loop. They are not among its connections.
    pub tunnels_max: usize,
    /// How many requests it may get before their bodies are complete; by default, none.
    pub streamed_bodies: StreamedBodies,
    /// Whether a connection is used for more than one request.
    pub keep_connections: bool,
    /// After how many requests a connection is closed; 0: never.
    pub requests_max_per_connection: u64,
    /// How long a connection is kept without a request. A php-fpm process serves only one connection at a time, so this
    /// should be short where other servers use the same processes.
    pub idle_timeout_ms: u64,
    /// Most connections of one loop that are kept without a request for longer than a tenth of a second; 0: none is kept.
    pub idle_max: usize,
    /// Bytes of a response's body that are still to come, from which they go through a pipe from an origin's TCP connection to a
    /// client that takes them so; 0: never.
    pub splice_bytes_min: u64,
    /// How long connecting may take; for a Unix socket, how long its backlog may be full.
    pub connect_timeout_ms: u64,
    /// Most requests that wait for a connection; beyond, they are refused.
    pub queue_max: usize,
    /// How long a request may wait for a connection.
    pub queue_timeout_ms: u64,
    /// How long the head of a response may take, from the last part of the request on. `None`: as long as `timeout_ms`.
    pub head_timeout_ms: Option<u64>,
    /// The longest head of a response, its blank line included. A connection holds as much memory only while such a head
    /// arrives.
    pub head_bytes_max: usize,
    /// How long an application may neither read nor write anything.
    pub timeout_ms: u64,
    /// How long nothing may move in a tunnel.
    pub tunnel_idle_timeout_ms: u64,
    /// How long an application that answers on a client's socket waits for a slow client before it gives the rest back.
    pub patience_ms: u32,
    /// Bytes of the region that a connection shares with its application: at least 64 KiB, less than 4 GiB.
    pub region_bytes: usize,
    /// Bytes of a response held in memory for a slow client.
    pub spool_memory_bytes: u64,
    /// Bytes held in a file beyond that. At this bound the application waits for the client.
    pub spool_file_bytes_max: u64,
    /// Where these files are.
    pub temporary: TemporaryFiles,
    /// What all processes know of it, if it is an origin.
    pub record: OriginRecord,
    /// The row of the figures in which requests to it are counted.
    pub figures: Option<u16>,
}

impl Settings {
    /// The default settings of an application.
    pub fn new(name: impl Into<String>, endpoint: Endpoint) -> Self {
        Self {
            name: name.into(),
            node: None,
            endpoint,
            protocol: Protocol::FastCgi,
            tls: None,
            send_proxy: None,
            transport: TransportChoice::Auto,
            passfd_trust: Trust::All,
            backlog_notice: None,
            connections_max: 32,
            tunnels_max: 8_192,
            streamed_bodies: StreamedBodies::default(),
            keep_connections: true,
            requests_max_per_connection: 0,
            idle_timeout_ms: 100,
            idle_max: usize::MAX,
            splice_bytes_min: 0,
            connect_timeout_ms: 5_000,
            queue_max: 1_000,
            queue_timeout_ms: 30_000,
            head_timeout_ms: None,
            head_bytes_max: RESPONSE_HEAD_BYTES_MAX,
            timeout_ms: 60_000,
            tunnel_idle_timeout_ms: 3_600_000,
            patience_ms: 100,
            region_bytes: 2 << 20,
            spool_memory_bytes: 256 << 10,
            spool_file_bytes_max: 1 << 30,
            temporary: TemporaryFiles {
                folder: std::env::temp_dir().into(),
                space: TemporarySpace::default(),
            },
            record: OriginRecord::default(),
            figures: None,
        }
    }
}

impl Endpoint {
    fn is_tcp(&self) -> bool {
        matches!(self, Self::Shared(address) if address.is_tcp())
    }
}

impl Application {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn new(settings: Settings) -> Result<Arc<Self>, BadSettings> {
        static APPLICATIONS: AtomicU64 = AtomicU64::new(0);
        let within = |ok: bool, error| if ok { Ok(()) } else { Err(error) };
        within((1..=CONNECTIONS_LIMIT).contains(&settings.connections_max), BadSettings::Connections)?;
        within((REGION_BYTES_MIN..1 << 32).contains(&settings.region_bytes), BadSettings::RegionBytes)?;
        within(settings.spool_memory_bytes > 0, BadSettings::SpoolMemory)?;
        within(settings.timeout_ms > 0 && settings.connect_timeout_ms > 0, BadSettings::NoTime)?;
        let is_local_transport = matches!(settings.transport, TransportChoice::Shm | TransportChoice::PassFd);
        let remote = settings.endpoint.is_tcp();
        within(!(is_local_transport && remote), BadSettings::TransportOverTcp)?;
        within(
            !(is_local_transport && settings.protocol != Protocol::FastCgi),
            BadSettings::TransportOverScgi,
        )?;
        within(!(is_local_transport && settings.tls.is_some()), BadSettings::TransportOverTls)?;
        let id = APPLICATIONS.fetch_add(1, Ordering::Relaxed);
        Ok(Arc::new(Self { settings, id, chunks: Mutex::default() }))
    }

    /// The settings as they were given.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The name in reports.
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Where the process in this slot of the table listens. Processes that share an address ignore the slot.
    pub(crate) fn address(&self, slot: usize) -> Address {
        match &self.settings.endpoint {
            Endpoint::Shared(address) => address.clone(),
            Endpoint::Members { prefix, .. } => Address::Unix(socket_path(prefix, slot)),
        }
    }

    /// The address to show in reports.
    pub(crate) fn shown_address(&self) -> Address {
        match &self.settings.endpoint {
            Endpoint::Shared(address) => address.clone(),
            Endpoint::Members { prefix, .. } => Address::Unix(prefix.clone()),
        }
    }

    /// A chunk for bytes of a request's body, which the application reads there. `None`: no process of it has said that it
    /// does, or all chunks are in use; then the bytes are sent.
    pub fn chunk(&self) -> Option<Chunk> {
        self.chunks().as_ref()?.take()
    }

    /// A process has said that it takes bodies by reference: from now on there are chunks, if there is memory for them.
    pub(crate) fn open_chunks(&self) {
        let mut chunks = self.chunks();
        if chunks.is_none() {
            *chunks = ChunkPool::create(CHUNKS_MAX).ok();
        }
    }

    /// Chunks that hold bytes of bodies.
    pub(crate) fn chunks_in_use(&self) -> usize {
        self.chunks().as_ref().map_or(0, ChunkPool::in_use)
    }

    /// The pool of its chunks.
    pub(crate) fn chunk_pool(&self) -> Option<ChunkPool> {
        self.chunks().clone()
    }

    /// A process may go on to look at chunks of this pool that it has not returned: none of them is used again.
    pub(crate) fn retire_chunks(&self, pool: &ChunkPool) {
        let mut chunks = self.chunks();
        if chunks.as_ref() == Some(pool) {
            *chunks = ChunkPool::create(CHUNKS_MAX).ok();
        }
    }

    fn chunks(&self) -> MutexGuard<'_, Option<ChunkPool>> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The table of processes, if each has an address of its own.
    pub(crate) fn table(&self) -> Option<&Arc<ProcessTable>> {
        match &self.settings.endpoint {
            Endpoint::Shared(_) => None,
            Endpoint::Members { table, .. } => Some(table),
        }
    }

    /// Whether a better transport than `plain` is possible.
    pub(crate) fn can_share(&self) -> bool {
        self.settings.protocol == Protocol::FastCgi
            && self.settings.tls.is_none()
            && !self.settings.endpoint.is_tcp()
    }
}

/// What is wrong with an application's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadSettings {
    /// `connections_max` is out of range.
    Connections,
    /// `region_bytes` is out of range.
    RegionBytes,
    /// `spool_memory_bytes` is 0.
    SpoolMemory,
    /// `timeout_ms` or `connect_timeout_ms` is 0.
    NoTime,
    /// `shm` and `passfd` need Unix sockets.
    TransportOverTcp,
    /// `shm` and `passfd` need FastCGI.
    TransportOverScgi,
    /// `shm` and `passfd` need a socket in clear.
    TransportOverTls,
}

impl fmt::Display for BadSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connections => write!(f, "connections_max must be 1 to {CONNECTIONS_LIMIT}"),
            Self::RegionBytes => {
                write!(f, "region_bytes must be {REGION_BYTES_MIN} or more, and below 4 GiB")
            }
            Self::SpoolMemory => f.write_str("spool_memory_bytes must not be 0"),
            Self::NoTime => f.write_str("timeout_ms and connect_timeout_ms must not be 0"),
            Self::TransportOverTcp => f.write_str("the transports shm and passfd need a Unix socket"),
            Self::TransportOverTls => f.write_str("the transports shm and passfd need a socket without TLS"),
            Self::TransportOverScgi => f.write_str("the transports shm and passfd need FastCGI"),
        }
    }
}

impl std::error::Error for BadSettings {}

/// Chunks of 64 KiB for the bodies of one application, in each worker process: 8 MiB, of which those take memory that were
/// ever used at the same time. Sixteen uploads that the application reads slowly; others are sent as bytes.
const CHUNKS_MAX: u16 = 128;

/// Most connections of one loop to one application.
pub const CONNECTIONS_LIMIT: usize = 32_768;

/// With a smaller region an application would have to wait in the middle of an ordinary page.
pub const REGION_BYTES_MIN: usize = 64 << 10;
