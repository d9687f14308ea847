//! What Baton tells the people who run it: [`Trouble`], an error with its likely cause and a remedy; [`log`], the error
//! log; [`utc`], times as both show them; [`counted`], numbers of things.

mod count;
pub mod log;
mod time;
mod trouble;

pub use count::{counted, counted_as, days};
pub use time::{utc, utc_bytes};
pub use trouble::Trouble;
