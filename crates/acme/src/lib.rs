//! Certificates by ACME (RFC 8555): a process of its own that obtains and renews them.
//!
//! ```text
//!             settings, "all workers answer" ──►             ──► authority, over HTTPS
//!   master                                       process
//!             ◄── challenges, certificates, plans             ──► store, a folder
//! ```
//!
//! The [`Planner`] decides what is done next, as a machine without I/O. The process does it, one thing after the other.
//! The master starts the process, gives challenges and certificates to the workers, and reads the [`Store`] itself when
//! it starts: sites serve on with the certificates that are there, however the authority is.

mod authority;
mod challenge;
mod failure;
mod http;
mod master;
mod messages;
mod names;
mod planner;
mod process;
mod settings;
mod store;
mod stored;
mod time;
mod workers;

pub use messages::{Challenge, FromAcme, ToAcme};
pub use names::{NAMES_MAX, Names};
pub use planner::{FailureScope, LONGEST_SLEEP, PlanStatus, Planner, PlannerAction, Validity, Window};
pub use process::run;
pub use settings::{AcmeSettings, ChallengeKind, ExternalAccount, LETS_ENCRYPT, LETS_ENCRYPT_STAGING};
pub use store::{FILE_BYTES_MAX, Store};
pub use time::UnixTime;
