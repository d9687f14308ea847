//! Real programs with the library preloaded, and a small server that plays Baton's part: it passes the client's socket,
//! offers, and reads what it is told.

mod support;

mod answers;
mod plain;
mod pools;
mod programs;
mod shared;
mod streams;
