//! The gateway against an application that follows a script, over real sockets.

mod common;
mod passfd;
mod plain;
