//! Connections to the control socket and the admin listener, and the pages of the latter.

mod connections;
pub(crate) mod metrics_page;
pub(crate) mod origins_page;
pub(crate) mod pages;

pub(crate) use connections::{ConnectionId, Connections, Endpoint, Received, Requester};
pub(crate) use metrics_page::ServerMetrics;
