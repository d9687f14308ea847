//! Servers that share load, seen by a client that follows links: a home server and its peers over loopback.
//!
//! Tests wait for events; intervals are fractions of a second, so that documents move soon.

#[path = "../common/mod.rs"]
mod common;

mod crawler;
mod faults;
mod moves;
mod secure;
mod servers;
mod strangers;
mod trust;
mod ways;
