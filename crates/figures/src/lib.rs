//! Figures with intervals and published values, claims with verdicts: as SVG, a page, Markdown and text.
//!
//! ```text
//!   samples ─► Interval ─► Datum ─► Line ─► Figure ─┐          ┌─► page (HTML, with SVG inside)
//!                  └─► Comparison (ahead, level, …) ├─► Report ┼─► text for a terminal
//!                              published ─► Claim ──┘          └─► Markdown, and marked blocks of documents
//! ```
//!
//! The simulator and the lab describe what they found with one model; this crate alone draws it.
//! It knows no experiment, no file and no clock.

mod claim;
mod figure;
mod interval;
mod markdown;
mod number;
mod page;
mod report;
mod svg;
mod table;
mod text;

#[cfg(test)]
mod tests;

pub use claim::{Claim, Verdict};
pub use figure::{Axis, Datum, Figure, FigureKind, Line, Point, Published, Scale};
pub use interval::{Better, Comparison, Interval, Paired, SAMPLES_MIN};
pub use markdown::{Replaced, claims_table, replaced};
pub use number::brief;
pub use page::page;
pub use report::Report;
pub use table::Table;
