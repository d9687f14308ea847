//! TLS for the connections of clients, without I/O: bytes and the time go in, bytes and decisions come out.
//!
//! This crate alone knows the TLS library (rustls, with the primitives of AWS-LC).
