//! Third-party applications as their users see them: by every transport, each answer compared with that of nginx
//! before the same application.
//!
//! ```text
//!               ┌─► nginx ─► php-fpm                        what is right
//!   Visitor ────┼─► baton ─► php-fpm                        unix
//!               ├─► baton ─► php-fpm + libbaton_preload     passfd, shm
//!               └─► baton ─► php-fpm + the extension        files by their names
//! ```
//!
//! The same with Perl and fcgiwrap, which find either libfcgi, and with Flask and Starlette; and a browser in the wiki. Whether a transport is really used is
//! seen from outside: in what descriptors and memory a process of the application holds while it answers.

#[path = "../common/mod.rs"]
mod common;

mod browser;
mod built;
mod comparison;
mod converted;
mod differential;
mod everywhere;
mod faults;
mod fpm;
mod generated;
mod git;
mod holdings;
mod journey;
mod libfcgi;
mod nginx;
mod program;
mod python;
mod recipes;
mod reload;
mod seen;
mod site;
mod uploads;
mod visitor;
mod wiki;
