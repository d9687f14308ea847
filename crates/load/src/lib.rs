//! Load for web servers, and a judgement of how they carried it.
//!
//! ```text
//!   site ──► script ──► closed loop, pace │ sessions ──► exchange ──► server
//!   (files,  (who asks      (when)              │        (HTTP/1)
//!  programs)  for what)                         └──► LoadReport ──► fairness
//! ```
//!
//! - [`Load`]: connections that ask again when their reply is complete, or when a request is due;
//! - [`sessions`]: clients that come independently of the server, think, and leave when it takes too long;
//! - [`site`]: what is served and asked for, as the sources had it; [`files`]: the bytes of it.
//!
//! It must cost less per request than the servers it measures, or it measures itself. So it
//! - lets the kernel drop the bodies of replies (`MSG_TRUNC`) instead of copying unused bytes;
//! - prepares each request once, as bytes;
//! - spins on its sockets instead of sleeping. Under virtualisation waking an idle CPU is an interrupt with a VM exit,
//!   and the bill goes to the waker: the server. With a sleeping client a server that sends a reply in many pieces
//!   looks up to twice as expensive as it is, and rankings turn round.
//!
//! A report says what share of its time the generator was busy, and whether it was the limit.

mod busy;
mod chunks;
mod closed;
mod exchange;
mod fairness;
pub mod files;
mod idle;
mod judgement;
mod pace;
mod poll;
mod reply;
mod report;
mod requests;
mod script;
pub mod sessions;
pub mod site;
mod sizes;
mod targets;
mod text;
mod wire;

pub use busy::thread_cpu;
pub use closed::{Load, LoadSettings};
pub use fairness::{TimeoutLimit, Unfair};
pub use idle::{ANSWER_MAX, ask};
pub use judgement::NoResult;
pub use report::{Failure, Latencies, LoadReport, SessionCounts};
pub use script::{Script, ScriptStep};
pub use sizes::{SizeCount, SizeCounts};
pub use targets::{Expects, LoadRequest};
