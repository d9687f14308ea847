//! A library to be preloaded (`LD_PRELOAD`) into programs that carry their own FastCGI code, php-fpm above all: they
//! answer on the client's own socket (`docs/handover-protocol.md`), unmodified.
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
//! The functions of the libc that a program uses on a FastCGI connection are defined here, too, so that the dynamic
//! linker finds these first (`calls`). Only connections that were accepted on a Unix stream socket and begin as FastCGI
//! does are looked at; for every other descriptor a call costs one look into a table (`table`).
//!
//! Whatever looks unfamiliar is left alone. A connection that is not blocking, or on which something is sent before
//! anything was received, is not ours. Output that is not FastCGI, of another request or from the side is passed on as
//! it is. An offer that cannot be taken up is declined, and the program answers in the plain way.
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
mod link;
mod outgoing;
mod pair;
#[cfg(test)]
#[path = "../../../fuzz/src/pieces.rs"]
pub mod pieces;
mod real;
mod records;
mod table;
mod turn;
