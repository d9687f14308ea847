//! Connections to the control socket and the admin listener, and the pages of the latter.

pub(crate) mod cluster_page;
mod connections;
pub(crate) mod documents_page;
mod exposition;
pub(crate) mod figures_page;
pub(crate) mod metrics_page;
pub(crate) mod open_metrics;
pub(crate) mod origins_page;
pub(crate) mod pages;
pub(crate) mod screen;
mod trusted_host;

pub(crate) use connections::{ConnectionId, Connections, Endpoint, Received, Requester};
pub(crate) use metrics_page::ServerMetrics;
pub(crate) use trusted_host::Arrival;
