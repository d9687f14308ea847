//! What answers elsewhere: pools of connections to applications (FastCGI, SCGI) and origins (HTTP/1), and how their answers
//! travel.
//!
//! ```text
//!   Request ─► Gateway::begin ─► Pool ─► Connection ─► application
//!                                (queue, idle (one request     │
//!                                connections) at a time)       │
//!   ResponseEvent ◄──── Gateway::take ◄── PendingResponse ◄─────────────┘
//!                                (head, Spool, end)
//! ```
//!
//! Each connection has a transport for its answers: `plain` uses the socket, `shm` uses memory shared with the application,
//! and with `passfd` the application answers on the client's own socket. `docs/handover-protocol.md` describes the protocol.
//! An application that does not know it ignores offers and answers in the ordinary way.
//!
//! Each table keeps what is its own, with its deadlines: `pools` the queues, `connections` the sockets, what they are watched for
//! and which are to be read, `exchanges` the requests and which of them have events to take. The gateway ties them.
//!
//! A [`Gateway`] belongs to one event loop and never waits. Its methods by kind: *input* [`Gateway::handle_event`],
//! [`Gateway::handle_time`], [`Gateway::serve_released`]; *commands* [`Gateway::begin`], [`Gateway::abandon`],
//! [`Gateway::push_body`], [`Gateway::fail_body`], [`Gateway::resume_tunnel`],
//! [`Gateway::note_sent`], [`Gateway::drain`]; *output* [`Gateway::poll_ready`],
//! [`Gateway::take`], [`Gateway::take_all`], [`Gateway::deadline_ms`], [`Gateway::report`]. A round of a loop hands in its
//! events, then the time, then takes the event:
//!
//! ```no_run
//! # use baton_upstream::{Gateway, ResponseEvent};
//! # fn round(gateway: &mut Gateway, events: &[(u64, rustix::event::epoll::EventFlags)], now_ms: u64) {
//! for (data, flags) in events.iter().filter(|event| Gateway::owns(event.0)) {
//!     gateway.handle_event(*data, *flags, now_ms);
//! }
//! gateway.handle_time(now_ms);
//! while let Some(request_id) = gateway.poll_ready() {
//!     while let Some(event) = gateway.take(request_id) {
//!         // Heads, bodies and ends that have come together are sent together …
//! #       let _: ResponseEvent = event;
//!     }
//!     gateway.note_sent(request_id, now_ms); // … and when all that was taken is sent, more is read.
//! }
//! # }
//! ```

mod address;
mod admission;
mod answer_transport;
mod attempts;
mod backlog;
mod backlog_notice;
mod body_references;
mod channel;
mod chosen;
mod client_socket;
mod cluster_queue;
mod codec;
mod connection;
mod connections;
mod exchange;
mod exchanges;
mod failure;
mod gateway;
mod input;
mod loop_checks;
mod negotiate;
mod origins;
mod passfd;
mod peers;
mod pending_response;
mod pool;
mod pools;
mod proxy_header;
mod relay_meter;
mod report;
mod request;
mod response_event;
mod retry_budget;
mod ring;
mod send_queue;
mod settings;
mod shm;
mod socket;
mod spool;
mod tally;
mod temporary;
mod trail;

pub use address::{Address, NamedAddress};
pub use admission::{Admission, StreamedBodies};
pub use answer_transport::AnswerTransport;
pub use backlog_notice::{BacklogNotice, BacklogNotices};
pub use baton_dispatch::{Compared, FetchRule, HandOffSeen};
pub use chosen::Chosen;
pub use client_socket::ClientSocket;
pub use failure::{Failure, FailureReason};
pub use gateway::{Gateway, TunnelEnd, UNSENT_BYTES_MAX};
pub use origins::{
    CHOICE_LABELS, FAILURE_LABELS, FitSeen, NodesSeen, OriginCounts, OriginName, OriginRecord, OriginTable,
    WayPrices,
};
pub use peers::{
    BalanceSettings, CheckSettings, ClusterSettings, Ejection, Homes, JudgedBy, OfferedHandOff, OfferedWays,
    OriginState, PEERS_MAX, Peer, PeerEvent, Peers, Rehearsed, RehearsedFetch, Turn, TurnSought,
};
pub use proxy_header::{ClientEnds, ProxyVersion};
pub use request::{BodyRest, Request, RequestId, SocketPass};
pub use response_event::{ResponseEvent, ResponseEvents};
pub use settings::{
    Application, BadSettings, CONNECTIONS_LIMIT, Endpoint, Protocol, REGION_BYTES_MIN, Settings,
    TransportChoice, Trust,
};
pub use temporary::{NoRoom, TemporaryCounters, TemporaryFile, TemporaryFiles, TemporarySpace};
pub use trail::{Choice, ChoiceKey, Trail, Way};
