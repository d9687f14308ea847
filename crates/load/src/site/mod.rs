//! Sites as the sources had them: what is served, and who asks for what. Each is made from a seed, the same on every
//! machine, and has its statistics beside those that its source prints.

mod access_log;
mod compute;
mod kind;
mod media;
mod model;
mod programs;
mod prompts;
mod random;
mod sizes;
mod specweb2005;
pub mod specweb99;
mod statistics;
mod surge;
mod thinking;

pub use access_log::{PublishedLog, ReplayedLog, replay};
pub use kind::SiteKind;
pub use model::{LoadSite, SiteContent, SiteFile};
pub use specweb2005::Application;
pub use statistics::Statistic;
