//! The generator against a server that does what a script says: every fault shows in its column, and only there.

mod allocations;
mod closed;
mod pages;
mod scripted;
mod sessions;
