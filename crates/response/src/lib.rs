//! Answers as values, and the one place that finishes them: nothing else writes the final head of a response.
//!
//! ```text
//!   site ─► source (file | application | origin | cache | page) ─► Response ─► finish ─► Reply: the protocol
//!                                                                  a value     the steps
//! ```
//!
//! A [`Response`] says what is answered; [`finish`] does with it what is done with every response: digests, conditions and
//! ranges, compression, the fields of the route, the request's id, CORS, `Vary`, `Date`, `Server`, framing. Heads are lines all the
//! way ([0030](../../../docs/decisions/0030-heads-are-written-once.md)).
//!
//! It knows no connection and no version of HTTP: the protocol is a [`Reply`], and the thread lends [`Supplies`].

mod coder;
mod compress;
mod digest;
mod digests;
mod file;
mod finish;
pub mod head;
mod notice;
mod page;
mod reply;
mod rules;
mod selection;
pub mod send_way;
mod supplies;
mod value;

pub use coder::{Coder, CoderError, TURN_BYTES};
pub use digest::is_digested;
pub use digests::Digests;
pub use file::range;
pub use finish::{finish, switch};
pub use head::Beginning;
pub use page::Page;
pub use reply::Reply;
pub use rules::{Rules, SERVER};
pub use supplies::{IsResident, Supplies};
pub use value::{Author, Body, Ready, Response};
