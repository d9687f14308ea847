//! TLS for the connections of clients, without I/O: bytes and the time go in, bytes and decisions come out.
//!
//! ```text
//! bytes ─► looks_like_tls ─► Handshake ──► Established { Records, Facts }
//!                                │ work(): key exchange and signature, on any thread
//! ```
//!
//! [`Handshake`] drives the library (rustls, with the primitives of AWS-LC), [`Records`] seals and opens records in the
//! caller's memory, [`Server`] holds certificates and configurations. Nothing outside this crate knows the library.

mod alert;
mod client_hello;
mod facts;
mod failure;
mod handshake;
mod kernel;
mod pace;
mod record_error;
mod record_key;
mod records;
mod server;

pub use alert::Alert;
pub use client_hello::looks_like_tls;
pub use facts::{Cipher, Facts, Version};
pub use failure::{FailureReason, HandshakeFailure};
pub use handshake::{Established, HANDSHAKE_INPUT_BYTES_MAX, Handshake, Needs};
pub use kernel::KernelTransmit;
pub use record_error::RecordError;
pub use records::{ALERT_BYTES_MAX, Opened, RECORD_BYTES_MAX, Records, Sealed};
pub use server::{Protocol, Server};

#[cfg(test)]
mod tests;
