//! How much of a bounded table each client has.
//!
//! A bound protects the server. First come, first served, it would itself be the attack: one client that takes all places keeps
//! all others out. So each client has a share, which [`has_room`] states once for all tables:
//!
//! ```text
//!   0                                  three quarters          all
//!   ├──────── any client ─────────────────┼──── who has less ────┤
//!                                         │   than a quarter     │
//! ```
//!
//! On a quiet server the share does not bite: an office behind one address notices nothing.

mod client_key;
mod fair_queue;
mod room;
mod shares;

pub use client_key::ClientKey;
pub use fair_queue::FairQueue;
pub use room::{Full, has_room};
pub use shares::{Permit, Shares};
