//! Documents that migrate: what servers without a front-end make of a site, with the home server's own policy.
//!
//! ```text
//!   Made: pages at random ─┐
//!                          ├─► Site ─► simulation (baton_dispatch::migration) ─► DocumentOutcome
//!   access logs: Referer ──┘             ▲ walkers
//! ```

mod logged;
mod made;
mod outcome;
mod scenario;
mod server;
mod simulation;
mod site;
mod walker;

pub use logged::{NoEntryPoint, site_of_log};
pub use made::SiteParameters;
pub use outcome::DocumentOutcome;
pub use scenario::{DocumentScenario, HotPage, Machine};
pub(crate) use simulation::simulate;
pub use site::{DocumentSite, SiteFacts};
