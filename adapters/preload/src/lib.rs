//! A library to preload (`LD_PRELOAD`) into programs with their own FastCGI code, mainly php-fpm: unmodified, they
//! answer on the client's own socket (`docs/handover-protocol.md`).
//!
//! ```text
//!                    read, recv, poll …                            write, send …
//!   program  ◄───────────────────────────┐        ┌────────────────────────────── program
//!                                        │        │
//!                    ┌───────────────────┴──┐  ┌──▼──────────────────┐
//!                    │ Inbox: takes out     │  │ Outgoing: records   │  no offer: not touched
//!                    │ offers, descriptors, │  │ ─► baton-responder's├──────────────┐
//!                    │ controls             │  │    Answer           │              │
//!                    └───────────▲──────────┘  └──┬──────────────────┘              │
//!                                │                │ head, body                      │
//!   server ──────────────────────┘                └─────────► client                └────► server
//! ```
//!
//! It defines the libc's functions that a program uses on a FastCGI connection, and the dynamic linker finds these
//! first (`calls`). It handles only connections that were accepted on a Unix stream socket and begin with FastCGI;
//! for all others a call costs one table lookup (`table`).
//!
//! Anything unfamiliar is left alone. A non-blocking connection, or one on which the program sends first, is not
//! handled. Output that is not FastCGI, or of another request, is passed on unchanged. An offer that cannot be
//! accepted is declined, and the program answers by plain FastCGI.
//!
//! # Signals, threads, processes
//! The libc's functions may be called from signal handlers, so these may, too: a handler that has interrupted its
//! own thread in here is passed on to the libc (`turn`), and nothing is allocated for descriptors that
//! are not ours. Threads may read and write at the same time. No lock is kept across `fork`: what another thread was
//! using at that moment stays with the parent. A child of `vfork`, which runs in its parent's memory, changes nothing
//! there. None of the functions unwinds: `extern "C"` would end the process, and nothing that input can cause panics.

mod calls;
mod connection;
#[cfg(test)]
pub mod fuzz_replay;
mod inbox;
mod lent;
mod link;
mod outgoing;
mod pair;
#[cfg(test)]
#[path = "../../../fuzz/src/pieces.rs"]
pub mod pieces;
mod progress;
mod ready;
mod real;
mod records;
mod table;
mod turn;
