//! The endpoints for operators, the connections to them, and the pages of the admin listener.

pub(crate) mod cluster_page;
mod connections;
pub(crate) mod documents_page;
mod endpoints;
mod exposition;
pub(crate) mod figures_page;
pub(crate) mod metrics_page;
pub(crate) mod open_metrics;
pub(crate) mod origins_page;
pub(crate) mod pages;
pub(crate) mod screen;
mod trusted_host;

use connections::Connections;
pub(crate) use connections::{ConnectionId, Endpoint, Received, Requester};
pub(crate) use endpoints::Endpoints;
pub(crate) use metrics_page::ServerMetrics;
pub(crate) use trusted_host::Arrival;
