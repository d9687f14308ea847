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
mod certificate;
mod client_certificate;
mod client_hello;
mod clients;
mod facts;
mod failure;
mod handshake;
mod identity;
mod kernel;
mod pace;
mod pem;
mod proofs;
mod provider;
mod record_error;
mod record_key;
mod records;
mod self_signed;
mod server;
mod tickets;

pub use alert::Alert;
pub use certificate::{Certificate, KeyAlgorithm};
pub use client_certificate::ClientCertificate;
pub use client_hello::looks_like_tls;
pub use clients::{ClientCertificates, ClientPolicy, PolicyId};
pub use facts::{Cipher, Facts, Version};
pub use failure::{FailureReason, HandshakeFailure};
pub use handshake::{Established, HANDSHAKE_INPUT_BYTES_MAX, Handshake, Needs};
pub use identity::Identity;
pub use kernel::KernelTransmit;
pub use pem::PemFile;
pub use proofs::Proofs;
pub use record_error::RecordError;
pub use records::{ALERT_BYTES_MAX, Opened, RECORD_BYTES_MAX, Records, Sealed};
pub use self_signed::{SELF_SIGNED_LIFE, self_signed};
pub use server::{Protocol, Server, Site};
pub use tickets::{NoRandomness, TICKETS_OPEN_S, TicketSecrets, Tickets};

#[cfg(test)]
mod tests;
