//! Identities, handshakes and records against the library's client, over byte vectors.

mod authority;
mod client;
mod ends;
mod handshake;
mod identities;
mod members;
mod names;
mod origins;
mod proofs;
mod records;
mod sessions;
