//! What a request means: to which site and route it belongs, what guards it, what its target becomes, what it may take.
//!
//! ```text
//!   head ─► Plan ─► Site ─► Route ─► Guards ─► Action
//!            host    path    Matcher             Template, Rewrites, Cors, Documents, Marking
//! ```
//!
//! A plan does not change. It knows no connection and no loop; `config` makes it, an exchange asks it.

pub mod address_count;
pub mod address_range;
pub mod cluster_key;
pub mod condition;
pub mod cors;
pub mod documents;
pub mod facts;
pub mod guards;
pub mod json_pointer;
pub mod limits;
pub mod mark;
pub mod matcher;
pub mod plan;
pub mod proofs;
pub mod rewrites;
pub mod template;
mod trusted;
