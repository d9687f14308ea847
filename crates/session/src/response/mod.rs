//! Answers as values, and the one place that finishes them: nothing else writes the final head of a response.
//!
//! ```text
//!   site ─► source (file | application | origin | cache | page) ─► Response ─► finish ─► protocol
//!                                                                  a value     the steps
//! ```
//!
//! A [`Response`] says what is answered; [`finish`] does with it what is done with every response: conditions and ranges,
//! compression, the fields of the route, the request's id, CORS, `Vary`, `Date`, `Server`, framing. Heads are lines all the
//! way ([0030](../../../docs/decisions/0030-heads-are-written-once.md)).

mod coder;
mod compress;
mod file;
mod finish;
mod notice;
mod page;
mod rules;
mod selection;
mod value;

pub(crate) use coder::{Coder, CoderError, TURN_BYTES};
pub(crate) use file::range;
pub(crate) use finish::{finish, switch};
pub(crate) use page::Page;
pub(crate) use rules::{Rules, SERVER};
pub(crate) use value::{Author, Body, Ready, Response};
