//! Cache policies side by side: what a shared cache keeps of films and files, and what that saves its origin.
//!
//! ```text
//!   access logs: sessions ─┐
//!   traces: whole files ───┤
//!                          ├─► Workload ─► replay (the server's own index and policies) ─► CacheOutcome
//!   Media: sessions ───────┘
//! ```

mod logged;
mod media;
mod outcome;
mod replay;
mod scenario;
mod session;
mod workload;

pub use media::Media;
pub use outcome::CacheOutcome;
pub(crate) use replay::replay;
pub use scenario::CacheScenario;
pub use workload::Workload;
