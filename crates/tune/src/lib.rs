//! The search of `baton tune`: which settings serve a site best.
//!
//! ```text
//!            ┌──────────── Trial: these settings, for so many seconds ──► the caller measures
//!   Search ──┤                                                            present settings and these
//!            └─ halving ─► neighbours ─► finals ◄── Measured, TrialOutcome ◄── in a pair
//!                                          └─► Choice: settings, gain with its interval
//! ```
//!
//! A machine: it measures nothing and knows no server. It is asked what to measure next and told what came out.
//! Three stages share the time: successive halving of a coarse grid (Jamieson and Talwalkar, 2016), then steps to
//! neighbours of the best, as Harji tuned his servers by hand, then pairs of the finalists until an interval says who is
//! ahead. A pair is the present settings and others, one after the other, so that what disturbs the machine disturbs both.

mod choice;
mod goal;
mod map;
mod search;
mod space;

pub use choice::Choice;
pub use goal::{Goal, Measured, TrialOutcome};
pub use search::{Budget, Search, Trial};
pub use space::{Candidate, Dial, ServerKind, Space};
