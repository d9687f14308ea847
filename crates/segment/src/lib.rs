//! The shared cache without I/O: what may be stored and served, which segments of which objects are here, what to keep.

pub mod fill;
pub mod index;
pub mod layout;
mod next_segment;
pub mod policy;
pub mod rules;
mod units;

pub use next_segment::next_segment;
