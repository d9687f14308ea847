//! What Baton tells the people who run it: [`Trouble`], an error with its likely cause and a remedy; [`log`], the error
//! log; [`utc`], times as both show them.

pub mod log;
mod time;
mod trouble;

pub use time::utc;
pub use trouble::Trouble;
