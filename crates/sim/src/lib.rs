//! A simulator of web clusters: which distribution policy, how many nodes, how much memory would a site need?
//!
//! ```text
//!   trace  ─┐                    ┌─► report (text, JSON, CSV, SVG)
//!           ├─► model ─► Outcome ┼─► experiments: the published figures, and our own claims
//!  Scenario ┘                    └─► advice in plain words
//! ```
//!
//! Documents that migrate without a front-end have a model of their own ([`documents`]).
//!
//! The model of clusters is that of Pai, *Cache Management in Scalable Network Servers* (1999), section 3.2; the policies are
//! those of `baton-dispatch`, the very code that a front-end runs. A run depends on its scenario and trace alone: the
//! same seed gives the same numbers.

mod advice;
mod cache_comparison;
pub mod caching;
mod comparison;
mod document_comparison;
pub mod documents;
pub mod experiments;
pub mod model;
mod queueing;
pub mod report;
pub mod runner;
pub mod trace;

pub use advice::{Wish, advise};
pub use cache_comparison::compare_caches;
pub use comparison::compare;
pub use document_comparison::compare_documents;
