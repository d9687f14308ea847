//! The control socket: how `baton ctl` speaks to a running server.
//!
//! One connection carries one request and one answer, each a line of JSON:
//!
//! ```text
//! {"command":"reload"}
//! {"ok":{"reloaded":true,"needs_restart":["server.architecture"]}}    or    {"error":"..."}
//! ```

mod client;
mod protocol;
mod purge_request;
mod socket;

pub use client::{find, request};
pub(crate) use protocol::RouteTopic;
pub(crate) use protocol::{Answer, parse};
pub use protocol::{ClusterCommand, Command, RouteQuestion};
pub use purge_request::PurgeRequest;
pub(crate) use socket::ControlSocket;
pub use socket::usual_path;
