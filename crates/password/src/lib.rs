//! Users and the hashes of their passwords, as `.htpasswd` files have them: bcrypt and argon2.
//!
//! ```text
//!   file, settings ─► Users ── verify ─► takes some tens of milliseconds, for unknown users as well
//!                       ▲
//!   name, password ─► Verified: what was right lately, so that only the first request of a client takes them
//! ```
//!
//! No clock and no descriptor is read: the caller says what time it is.

mod hash;
mod users;
mod verified;

pub use hash::{Algorithm, Hash, RefusedHash, hash};
pub use users::{RefusedLine, Users};
pub use verified::{Tag, Verified};
