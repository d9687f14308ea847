//! Baton: a web server that hands data and connections over instead of copying them.

mod config;

fn main() {}
