//! What simulations of servers are made of: future events, and queues in front of servers.

mod events;
mod station;

pub(crate) use events::EventQueue;
pub(crate) use station::{Station, Work};
