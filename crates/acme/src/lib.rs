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
//!
//! Without the feature `obtain`, what the configuration and the master know of it is there, and the process is not.

#[cfg(feature = "obtain")]
mod authority;
#[cfg(feature = "obtain")]
mod challenge;
#[cfg(feature = "obtain")]
mod failure;
#[cfg(feature = "obtain")]
mod http;
#[cfg(feature = "obtain")]
mod master;
mod messages;
mod names;
#[cfg(feature = "obtain")]
mod planner;
#[cfg(feature = "obtain")]
mod process;
mod settings;
mod store;
#[cfg(feature = "obtain")]
mod stored;
mod time;
#[cfg(feature = "obtain")]
mod workers;

pub use messages::{Challenge, FromAcme, ToAcme};
pub use names::{NAMES_MAX, Names};
#[cfg(feature = "obtain")]
pub use planner::{FailureScope, LONGEST_SLEEP, PlanStatus, Planner, PlannerAction, Validity, Window};
#[cfg(feature = "obtain")]
pub use process::run;
pub use settings::{AcmeSettings, ChallengeKind, ExternalAccount, LETS_ENCRYPT, LETS_ENCRYPT_STAGING};
pub use store::{FILE_BYTES_MAX, Store};
pub use time::UnixTime;

/// Whether this build has the process.
pub const OBTAINS: bool = cfg!(feature = "obtain");
