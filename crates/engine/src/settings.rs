//! How the server does its work.

use baton_content::CacheSettings;
use baton_response::send_way::SendWay;
use baton_session::send_queue::SendfileMode;

use crate::architecture_name::ArchitectureName;

/// How the work is done. Fixed for the life of a worker process.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// Which processes and threads run the steps.
    pub architecture: ArchitectureName,
    /// Worker processes; `None`: the architecture's own choice.
    pub processes: Option<usize>,
    /// Kernel threads that run steps, where the architecture has several; `None`: its own choice.
    pub threads: Option<usize>,
    /// Helpers for blocking jobs per process, at the most.
    pub helpers_max: usize,
    /// Writers of `pipeline`.
    pub writers: usize,
    /// Connections of one worker process for which there are descriptors; [`Limits::connections_max`] holds as well.
    pub clients_max: usize,
    /// Connections accepted per wake-up of a listener, at the most.
    pub accepts_per_wake: usize,
    /// How files are sent that are both in memory and open.
    pub way: SendWay,
    /// Whether `sendfile` waits for the client.
    pub sendfile: SendfileMode,
    /// Bytes sent to one client before other clients have a turn.
    pub send_quantum_bytes: u64,
    /// Whether the kernel seals records of TLS where it can.
    pub kernel_tls: bool,
    /// Whether processes are bound to CPUs where the architecture has one per CPU.
    pub affinity: bool,
    /// Whether connections go to the worker on the CPU on which they arrive; see
    /// [`Topology::cpu_of_listener`](crate::Topology).
    pub steering: bool,
    /// Size of a connection's send buffer; `None`: the kernel's choice.
    pub socket_send_buffer_bytes: Option<usize>,
    /// How long the kernel withholds a connection without data from the server, in seconds; 0: not at all.
    pub defer_accept_s: u32,
    /// The file caches of one process.
    pub cache: CacheSettings,
    /// The cache of what is answered elsewhere, of one process.
    pub shared_cache: baton_cache::Settings,
    /// Whether a route is cached, or its requests go to the cluster: what is known of responses or nodes is worth most where all
    /// requests are seen.
    pub wants_one_process: bool,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            architecture: ArchitectureName::Auto,
            processes: None,
            threads: None,
            helpers_max: 16,
            writers: 16,
            clients_max: usize::MAX,
            accepts_per_wake: 64,
            way: SendWay::Measured,
            sendfile: SendfileMode::NonBlocking,
            send_quantum_bytes: 2 << 20,
            kernel_tls: false,
            affinity: true,
            steering: false,
            socket_send_buffer_bytes: None,
            defer_accept_s: 5,
            cache: CacheSettings::default(),
            shared_cache: baton_cache::Settings::default(),
            wants_one_process: false,
        }
    }
}
