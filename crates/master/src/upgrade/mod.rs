//! The two servers of an upgrade: each one's view of the other, and their messages.

pub(crate) mod message;
mod predecessor;
mod successor;

pub(crate) use predecessor::{InheritedSockets, Predecessor};
pub(crate) use successor::{LINGER, Successor, start_program};
