//! Applications whose processes Baton starts: from outside, with real ones, which are killed at every occasion.
//!
//! The application is `application.pl`, which reports on its own process.

#[path = "../common/mod.rs"]
mod common;

mod cgi;
mod fragile;
mod manager;
mod php;
mod pools;
mod processes;
mod programs;
mod supervised;
