//! TLS for the connections of clients, and to origins, without I/O: bytes and the time go in, bytes and decisions come
//! out.
//!
//! ```text
//! client ─► looks_like_tls ─► Handshake ──► Established { Records, Facts }
//!                                │ work(): key exchange and signature, on any thread
//!
//! OriginPolicy ─► OriginHandshake ──► OriginEstablished { Records }
//! ```
//!
//! [`MemberChannel`] is a connection between two members of a cluster.
//!
//! [`Handshake`] and [`OriginHandshake`] drive the library (rustls, with the primitives of AWS-LC), [`Records`] seals and
//! opens records in the caller's memory, [`Server`] and [`OriginPolicy`] hold certificates and configurations. Nothing
//! outside this crate knows the library.

mod alert;
mod any_certificate;
mod certificate;
mod client_certificate;
mod client_hello;
mod clients;
mod facts;
mod failure;
mod handshake;
mod identity;
mod kernel;
mod key_schedule;
mod library;
mod local_authority;
mod member;
mod member_authority;
mod member_verifier;
mod origin;
mod origin_error;
mod origin_handshake;
mod pace;
mod pem;
mod proofs;
mod provider;
mod record_error;
mod record_key;
mod records;
mod self_signed;
mod server;
mod system;
mod tickets;
mod traffic_secrets;

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
pub use local_authority::{LOCAL_DOMAINS, LOCAL_RENEWED_AFTER, LocalAuthority, is_local_name};
pub use member::{MemberChannel, MemberKey, MemberTlsError};
pub use member_authority::MemberAuthority;
pub use origin::{OriginPolicy, Trust};
pub use origin_error::OriginTlsError;
pub use origin_handshake::{OriginEstablished, OriginHandshake, OriginNeeds};
pub use pem::PemFile;
pub use proofs::Proofs;
pub use record_error::RecordError;
pub use records::{ALERT_BYTES_MAX, Opened, RECORD_BYTES_MAX, Records, Sealed, Stopped};
pub use self_signed::{SELF_SIGNED_LIFE, self_signed};
pub use server::{Protocol, Server, Site};
pub use system::system_authorities;
pub use tickets::{NoRandomness, TICKETS_OPEN_S, TicketSecrets, Tickets};

#[cfg(test)]
mod tests;
