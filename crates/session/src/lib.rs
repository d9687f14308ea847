//! A client as a machine: its connection, what it speaks, its exchanges, and what is being sent.
//!
//! ```text
//!   Wake ─► Session ─► protocol ─► exchange ─► response
//!             │ step    bytes to    request to   finish: the head
//!             ▼         requests    answer       and the body
//!           Need ◄────── SendQueue ◄─── aggregate ─────┘
//! ```
//!
//! A session takes one client as far as it goes without waiting and says what it needs next. It knows no loop: the thread that
//! runs it lends it a [`Context`](context::Context) for a step. What is answered elsewhere it gives away and gets back as
//! values: a [`Need`](session::Need), then a [`Wake`](session::Wake).

pub mod agent_link;
mod body_memory;
#[cfg(test)]
mod cold_file;
pub mod context;
pub mod departures;
mod exchange;
pub mod job;
pub mod protocol;
pub mod requests;
pub mod send_queue;
pub mod session;
pub mod transport;
mod upload;
