//! Handshakes and records against the library's client, over byte vectors.

mod ends;
mod handshake;
mod records;
