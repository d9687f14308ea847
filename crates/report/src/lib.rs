//! What Baton tells the people who run it: [`OperatorError`], an error with its likely cause and a remedy; [`log`], the error
//! log; [`utc`], times as both show them; [`counted`], numbers of things.

mod count;
pub mod log;
mod operator_error;
mod time;

pub use count::{counted, counted_as, days};
pub use operator_error::OperatorError;
pub use time::{utc, utc_bytes};
