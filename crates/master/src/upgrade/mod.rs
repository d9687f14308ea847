//! The two servers of an upgrade, as each sees the other, and what they say.

pub(crate) mod message;
mod predecessor;
mod successor;

pub(crate) use predecessor::{InheritedSockets, Predecessor};
pub(crate) use successor::{LINGER, Successor, start_program};
