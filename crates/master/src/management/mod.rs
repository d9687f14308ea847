//! Connections to the control socket and the admin listener, and the pages of the latter.

mod connections;
pub(crate) mod metrics_page;
pub(crate) mod pages;

pub(crate) use connections::{Asker, CallerId, Callers, Door, Heard};
pub(crate) use metrics_page::Figures;
