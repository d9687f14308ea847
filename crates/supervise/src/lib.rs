//! Child processes. The master's workers, the applications that it starts and the processes of `baton app run` are
//! supervised in the same way:
//!
//! ```text
//!   Restart ──due──► process ──ends by itself──► Restart: at once after a long life, else after a wait that doubles
//!                       │ is asked to end
//!                       └──► Stopping ──deadline──► killed
//! ```
//!
//! Each supervisor decides for itself how a process starts and when it is replaced. [`Lines`] is what a process prints,
//! [`messages`] are what it and its supervisor say to each other; [`describe_end`] says how one ended.

mod backoff;
mod ended;
mod lines;
pub mod messages;
mod restart;
mod stop;

pub use ended::{describe_end, describe_signal};
pub use lines::Lines;
pub use restart::{End, Restart};
pub use stop::{Stopping, kill, kill_late, signal};
