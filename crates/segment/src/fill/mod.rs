//! How an object is filled: which blocks are asked for, and who gets them.
//!
//! ```text
//! readers:      ▼ waits          ▼ reads the store
//! blocks:  ████████░░░░░░░░░████████████░░░░░░░
//! fills:           ├──►  ends ┘         ├──► paused, 4 blocks ahead of its fastest reader
//! ```
//!
//! A reader who needs a block that is not here joins a fill that is about to reach it, or begins one of its own, which ends
//! where blocks are here or another fill began: so each byte is fetched once, whether readers come together or one after the
//! other. A fill stays a few blocks ahead of the fastest of its readers; the others read what it stored, and it waits for
//! none of them. Fills whose last reader leaves are closed.
//!
//! All bodies are of one version. If an answer shows another one, readers who have bytes of the old one are cut, the others
//! begin anew.

mod answers;
mod events;
mod machine;
mod parts;

pub use events::{Action, Answer, CutReason, End, FillId, FillSettings, ReaderId, Version};
pub use machine::Filling;
