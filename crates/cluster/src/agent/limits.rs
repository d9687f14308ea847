//! Bounds and times of the agent. Times are in milliseconds.

/// Connections that a front-end has given away, and that a node has from front-ends: as many as the kernel's table has
/// entries for.
pub const FLOWS_MAX: usize = 65_536;

/// Hand-offs to one node under way, each of which holds a request and a TCP state in memory: at a tenth of a millisecond each,
/// ten times as many as a busy node takes at a time.
pub const UNDER_WAY_MAX: usize = 256;

/// Connections that wait for a server, which restarts or does not keep up.
pub const WAITING_MAX: usize = 1024;

/// Links of front-ends that a node knows, those that have lost their connection among them.
pub const LINKS_MAX: usize = 64;

/// Connections of front-ends that a node has at a time: room for those that replace another.
pub const CONNECTIONS_MAX: usize = 2 * LINKS_MAX;

/// How long a front-end waits for a node to restore a socket. Clients' packets are dropped meanwhile, and repeated.
pub const CONFIRM_MS: u64 = 500;

/// A node that says nothing for so long is lost: its connections are reset.
pub const NODE_LOST_MS: u64 = 3_000;

/// A node forgets a link of which it has heard nothing for so long, and inert sockets: later than the front-end does.
pub const LINK_FORGOTTEN_MS: u64 = NODE_LOST_MS + 1_000;

/// A front-end asks a silent node whether it is there.
pub const PING_MS: u64 = 500;

/// How long packets of a closed connection are forwarded: last acknowledgements, and data that is repeated.
pub const LINGER_MS: u64 = 10_000;

/// How long a node drops packets of a connection that it has returned, which were on their way to it.
pub const STRAGGLERS_MS: u64 = 1_000;

/// How long a node gathers what it reports, and a front-end what it tells its server.
pub const GATHER_MS: u64 = 5;

/// How long they gather what changes no load: news of that soon follow, or there is no hurry.
pub const GATHER_QUIET_MS: u64 = 100;

/// How often a drained node says how many connections it has left.
pub const LEFT_MS: u64 = 200;

/// How long connections wait for a server that restarts. Then they are reset, and a node's connections have ended.
pub const SERVER_LOST_MS: u64 = 10_000;

/// How long a server that takes no more connections is left alone.
pub const GIVE_AGAIN_MS: u64 = 10;

/// The first and the longest wait before a node is connected to again.
pub const RETRY_MS: std::ops::RangeInclusive<u64> = 50..=1_000;
