//! What a step of a session may use.
//!
//! There is one context for each kernel thread that runs steps; nothing in it is shared with other CPUs but the
//! plan, which does not change, and the file cache where an architecture shares it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use baton_buf::Pool;
use baton_cache::SharedCache;
use baton_content::{Blocking, Cache, Found, NeedsDisk, Query, Tree};
use baton_dcws::CountedRequest;
use baton_http::{Stamp, h2};
use baton_response::send_way::{SendWay, SendWays};
use baton_response::{Digests, Supplies};
use baton_site::address_count::{AddressCounts, Counted};
use baton_site::limits::Limits;
use baton_site::mark::Ids;
use baton_site::plan::Plan;
use baton_telemetry::clock::Clock;
use baton_telemetry::log::AccessLogs;
use baton_telemetry::metrics::{Counters, Tally};

use crate::agent_link::{AgentLink, FlowEvent};
use crate::departures::Departures;
use crate::send_queue::{SendPolicy, SendfileMode, is_resident};
use crate::transport::Transport;

/// What a step may use; one for each kernel thread that runs steps.
#[derive(Debug)]
pub struct Context {
    /// What is served.
    pub plan: Arc<Plan>,
    /// The time of the last wake-up.
    pub clock: Clock,
    /// Names, heads, open files.
    pub cache: Arc<Cache>,
    /// The cache of what is answered elsewhere, which all loops of the process share.
    pub shared_cache: Option<Arc<SharedCache>>,
    /// Whether this thread may wait for a disk.
    pub blocking: Blocking,
    /// Looks a path up: [`Cache::find`], but for a simulated disk.
    pub find: Find,
    /// How send queues send.
    pub send: SendPolicy,
    /// What sending from memory and from the page cache costs.
    pub send_ways: SendWays,
    /// Whether connections are to end with the request under way.
    pub draining: bool,
    /// Whether connections of front-ends are to go back to them, although this process serves on.
    pub gives_back: bool,
    /// Whether connections are to end with their next request.
    pub lingering: bool,
    /// Where clients go that another process serves on, if there is one.
    pub departures: Option<Departures>,
    /// The way to other hosts of the cluster, if there is one.
    pub agent_link: Option<Arc<AgentLink>>,
    /// Whether it is the context of a loop: the only kind of thread that gives connections away.
    pub is_of_loop: bool,
    /// Until when a drain waits for connections that could move if they were without requests.
    pub patience_until_ms: u64,
    /// Connections that the architecture or its tuner admits to this loop; the configured limit holds as well.
    pub connections_admitted: usize,
    /// Where connections are counted by the addresses of their clients.
    pub address_counts: Option<AddressCounts>,
    /// Memory for response heads.
    pub heads: Pool,
    /// Memory for pieces of streamed request bodies.
    pub bodies: Pool,
    /// What has been counted.
    pub tally: Tally,
    /// What is to be logged.
    pub log: AccessLogs,
    /// Where ids of requests come from.
    pub ids: Ids,
    /// Digests of bodies that stay in memory.
    digests: Digests,
    /// Writes a line for the operator into the error log.
    pub warnings: Warnings,
    /// The second of the last warning on TLS.
    warned_of_tls_s: u64,
    /// Memory for frames of HTTP/2.
    pub packer: h2::Packer,
    /// Where heads of HTTP/2 are written.
    pub head_text: h2::HeadText,
    /// Where paths are decoded into.
    pub path: Vec<u8>,
    /// The document that was looked up last, for the record of its request.
    pub counted: Option<CountedRequest>,
    /// Where sockets are read into. A waiting connection copies at most an incomplete head out of it.
    pub scratch: Vec<u8>,
}

impl Context {
    /// Tells the operator, in the error log.
    pub fn warn(&self, warning: std::fmt::Arguments<'_>) {
        (self.warnings)(warning);
    }

    /// Tells the operator of a client that failed to speak TLS, once a second at the most: a scanner fails thousands of
    /// times.
    pub fn warn_of_tls(&mut self, warning: std::fmt::Arguments<'_>) {
        let second = self.clock.stamp().unix_seconds;
        if std::mem::replace(&mut self.warned_of_tls_s, second) != second {
            self.warn(warning);
        }
    }

    /// Counts a connection that was accepted. `None`: its client has too many.
    pub fn admit(&self, peer: Option<SocketAddr>) -> Option<Counted> {
        let Some((counts, address, most)) = self.bound_of(peer) else { return Some(Counted::default()) };
        counts.enter_up_to(address, most)
    }

    /// Counts a connection that another process has admitted.
    pub fn count(&self, peer: Option<SocketAddr>) -> Counted {
        self.bound_of(peer).map_or_else(Counted::default, |(counts, address, _)| counts.enter(address))
    }

    fn bound_of(&self, peer: Option<SocketAddr>) -> Option<(AddressCounts, IpAddr, u64)> {
        let address = peer?.ip();
        Some((self.address_counts?, address, self.plan.connections_max_of(address)?))
    }

    /// Whether the connection is to end with the request under way: this process leaves, and no other goes on with it.
    pub(crate) fn is_last_request_of(&self, client: &Transport) -> bool {
        let goes_back = self.gives_connections_back() && client.is_of_front_end();
        !goes_back && self.is_last_request_over(client.passport_version())
    }

    /// Whether connections go back to the front-ends that have handed them over: this process leaves, or the node is drained.
    pub fn gives_connections_back(&self) -> bool {
        (self.draining || self.gives_back) && self.agent_link.is_some()
    }

    /// Whether a connection whose passport would be of this version is to end with the request under way.
    pub fn is_last_request_over(&self, version: Option<u32>) -> bool {
        let takes = |departures: &Departures| departures.are_possible_with(version);
        let leaves = self.departures.as_ref().is_some_and(takes);
        (self.draining || self.lingering) && !leaves
    }

    /// Whether another process goes on now with a connection whose passport is of this version.
    pub fn may_depart(&self, version: Option<u32>) -> bool {
        let now_ms = self.clock.now_ms();
        self.departures.as_ref().is_some_and(|departures| departures.are_open_for(version, now_ms))
    }

    /// The process leaves, and its requests have so long to end.
    pub fn begin_drain(&mut self, requests_ms: u64) {
        self.draining = true;
        // A client that is told has the other half of the time.
        let patience_ms = self.clock.now_ms().saturating_add(requests_ms / 2);
        self.patience_until_ms = self.patience_until_ms.min(patience_ms);
    }

    /// Notes for the handoff agent what has become of a connection, if a front-end has handed it over.
    pub fn note_flow(&self, flow: Option<u64>, event: FlowEvent) {
        if let (Some(flow), Some(agent)) = (flow, &self.agent_link) {
            agent.note(flow, event, self.clock.now_ms());
        }
    }

    /// What finishing a response takes from this thread.
    pub(crate) fn supplies(&mut self) -> Supplies<'_> {
        Supplies {
            now: self.clock.stamp(),
            heads: &mut self.heads,
            ids: &mut self.ids,
            log: &mut self.log,
            digests: &mut self.digests,
            tally: &mut self.tally,
            send_ways: &mut self.send_ways,
            is_resident: self.send.test_residency.then_some(self.send.is_resident),
        }
    }

    /// Looks a path up in the cache. A thread that must not wait for a disk is told [`NeedsDisk`] instead.
    pub fn find(&self, tree: &Arc<Tree>, query: &Query<'_>) -> Result<Found, NeedsDisk> {
        (self.find)(&self.cache, tree, query, self.clock.stamp(), self.blocking)
    }

    /// A context in which nothing has happened; the loop adds what only it has.
    pub fn new(
        plan: Arc<Plan>,
        cache: Arc<Cache>,
        blocking: Blocking,
        send: SendPolicy,
        send_ways: SendWays,
        records: Records,
    ) -> Self {
        let Records { tally, log, warnings } = records;
        Self {
            plan,
            clock: Clock::default(),
            cache,
            shared_cache: None,
            blocking,
            find: Cache::find,
            send,
            send_ways,
            draining: false,
            gives_back: false,
            lingering: false,
            departures: None,
            agent_link: None,
            is_of_loop: false,
            patience_until_ms: u64::MAX,
            connections_admitted: usize::MAX,
            address_counts: None,
            heads: Pool::new(HEADS_MAX, HEAD_BYTES_MAX),
            bodies: Pool::new(BODY_PIECES_MAX, BODY_PIECE_BYTES),
            tally,
            log,
            ids: Ids::default(),
            digests: Digests::default(),
            warnings,
            warned_of_tls_s: 0,
            packer: h2::Packer::new(),
            head_text: h2::HeadText::default(),
            path: Vec::new(),
            counted: None,
            scratch: vec![0; SCRATCH_BYTES],
        }
    }
}

/// Looks a path up in the cache.
pub type Find = fn(&Cache, &Arc<Tree>, &Query<'_>, &Stamp, Blocking) -> Result<Found, NeedsDisk>;

/// Where a step records what happened.
#[derive(Debug)]
pub struct Records {
    /// Counters.
    pub tally: Tally,
    /// Access logs.
    pub log: AccessLogs,
    /// The error log.
    pub warnings: Warnings,
}

/// Takes warnings for the operator: each becomes a line in the error log.
pub type Warnings = fn(std::fmt::Arguments<'_>);

/// Heads under way at a time that the pool remembers.
const HEADS_MAX: usize = 256;

/// A generated head or a small error page; what is larger is not worth keeping.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// Room for one incomplete head and a full read behind it.
pub const SCRATCH_BYTES: usize = 64 * 1024;

/// Bytes of a streamed body that are passed to an application at a time.
pub const BODY_PIECE_BYTES: usize = 64 * 1024;

/// Pieces of memory for them that a loop keeps: 4 MiB.
const BODY_PIECES_MAX: usize = 64;

impl Context {
    /// For a test that needs no site: an empty plan, and a cache that is its own.
    pub fn without_sites(cache: baton_content::CacheSettings) -> Self {
        let send = SendPolicy {
            sendfile: SendfileMode::NonBlocking,
            quantum_bytes: 1 << 20,
            test_residency: true,
            is_resident,
            kernel_tls: false,
        };
        let tally = Tally::new(Counters::allocate(1).unwrap().remove(0), None);
        Self::new(
            Arc::new(Plan::new(Vec::new(), Limits::default(), true)),
            Arc::new(Cache::new(cache)),
            Blocking::Never,
            send,
            SendWays::new(SendWay::Measured),
            Records { tally, log: AccessLogs::default(), warnings: |_| {} },
        )
    }
}
