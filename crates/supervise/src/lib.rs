//! Child processes, the same for the master's workers, for the applications that it starts and for `baton app run`: how
//! long to wait before the next one starts ([`Backoff`]), how one ended ([`describe_end`]), and what it prints
//! ([`Lines`]).

mod backoff;
mod ended;
mod lines;

pub use backoff::Backoff;
pub use ended::{describe_end, describe_signal};
pub use lines::Lines;
