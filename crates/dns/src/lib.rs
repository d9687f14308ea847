//! Host names of origins, resolved again before their answers are too old.
//!
//! ```text
//!   Names::watch ─► Name ◄─ addresses() ─ event loops, at each connect
//!                     ▲
//!                 a thread: Refresh says when ─► Lookup: /etc/hosts ─► DNS by /etc/resolv.conf ─► getaddrinfo
//! ```
//!
//! An event loop never waits for a name: it takes the addresses that were found last. One thread per process looks up what
//! is due, one name after the other. [`message`] and [`Refresh`] are machines without I/O.

mod hosts;
mod lookup;
pub mod message;
mod names;
mod outcome;
mod refresh;

pub use lookup::Lookup;
pub use names::{Name, Names};
pub use outcome::{LookupError, Outcome};
pub use refresh::{Change, Refresh};
