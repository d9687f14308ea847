//! The life of a store, seen from outside: what is kept, what is sent, what a crash and a broken disk leave.

mod common;
mod damage;
mod disk_failure;
mod kill;
mod life;
mod model;
mod sending;
mod threads;
