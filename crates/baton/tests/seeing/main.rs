//! What operators see of a running server: logs, metrics, the status on a terminal and in a browser.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/origin.rs"]
mod origin;

mod figures;
mod logs;
mod marks;
mod metrics;
mod reports;
mod screen;
mod terminal;
