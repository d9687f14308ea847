//! The rules of a shared HTTP cache (RFC 9111, 5861, 9110, 9211, 9213, 9875), without I/O.
//!
//! ```text
//!   request ─► Key, CacheRequest::of ─► lookup ─► decide ─┬─► serve: fresh, stale, 304
//!                                                  ├─► revalidate ─► Stored::freshen, or a new object
//!                                                  └─► fetch ─► Stored::of, or NotStored
//! ```
//!
//! Where a text leaves a choice, the answer is the one that stores or reuses less.
//!
//! What a caller does, in this order:
//!
//! 1. [`CacheRequest::of`] tells requests that go straight to the origin. Their answers may end what is stored: [`invalidated`].
//! 2. [`Key`] is made of the target in the form in which it goes on; [`Generations::is_current`] leaves out what was purged.
//! 3. [`decide`] chooses among the variants of the key.
//! 4. A request for the origin has the client's fields by [`FieldUse`], the codings of [`push_reduced_codings`], and the
//!    conditions of [`Conditional`]. Its generation is that of the moment when it begins.
//! 5. [`Validation`] says what the answer to conditions means, [`Stored::of`] whether a new one is stored. The client that
//!    it was fetched for gets the origin's own head: a stored one may lack fields.
//! 6. Other clients get [`Stored::head`] without the fields of [`is_replaced_on_reuse`], with Age, and with
//!    [`CacheStatus`] behind the origin's.

mod cache_status;
mod combine;
mod decide;
mod directives;
mod field_use;
#[cfg(test)]
mod fixture;
mod freshness;
mod generations;
mod invalidate;
mod key;
mod labels;
mod route_rules;
mod storable;
mod stored;
mod targeted;
mod validate;
mod validators;
mod vary;

pub use cache_status::{CacheStatus, Forward};
pub use combine::NotJoined;
pub use decide::{Answer, Bypass, CacheRequest, Decision, Hit, decide};
pub use directives::{Delta, RequestDirectives, ResponseDirectives, SECONDS_MAX};
pub use field_use::{FieldUse, KeyedFields};
pub use freshness::{Freshness, Times};
pub use generations::{Generations, PREFIX_DEPTH_MAX, Purge, Purged};
pub use invalidate::{GROUPS_MAX, Invalidation, invalidated};
pub use key::{Arrival, Key, KeyHash, KeySecret, QueryRule, Scheme};
pub use labels::{LABELS_MAX, Label, labels_of};
pub use route_rules::RouteRules;
pub use storable::{Fetched, NotStored};
pub use stored::{Stored, is_replaced_on_reuse};
pub use targeted::targeted;
pub use validate::{Conditional, Validation, belongs_in_304};
pub use validators::Validators;
pub use vary::{VARIANTS_MAX, VariantKey, VaryRefusal, push_reduced_codings};
