//! Certificates by ACME (RFC 8555): a process that obtains and renews them.

mod planner;
mod time;

pub use planner::{Action, FailureScope, LONGEST_SLEEP, PlanStatus, Planner, Validity, Window};
pub use time::UnixTime;
