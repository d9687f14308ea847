//! The shared cache: between an exchange and what answers it elsewhere.
//!
//! ```text
//!              ┌─ look: a fresh response is here ──────────────────────────────────────────► head, body
//!   exchange ──┤                                              ┌─ Store: blocks ◄──┐
//!              └─ begin ─► LoopCache ─┬─ serve ───────────────┤                   │ pump
//!                            │        ├─ join ──► Fill ◄──────┴──── Gateway ◄─────┘
//!                            │        └─ fetch ─► Fill              │
//!                            └─ pass ───────────────────────────────┘
//! ```
//!
//! [`SharedCache`] is one per process. It knows what is stored, and what is being fetched. Each event loop has
//! [`Upstreams`]: a [`Gateway`](baton_upstream::Gateway), and a `LoopCache`, which answers requests with the events of a
//! gateway. So an exchange does not know whether bytes come from an origin, from the store, or from a response that another
//! loop is reading. A [fill](fill) is one response on its way into the store, with the clients that read it meanwhile.
//!
//! What may be stored and served the rules of [`baton_segment`] decide, what is kept its index, where the bytes are
//! [`baton_store`].

mod answer;
mod ask;
mod blocks;
mod counters;
mod directory;
mod exchange;
mod fetched_bytes;
mod fetched_head;
mod file_reads;
mod fill;
mod head_news;
mod held;
mod interim;
mod inventory;
mod live;
mod loop_cache;
mod memory_share;
mod mp4;
mod object;
mod opened;
mod part_pump;
mod parts;
mod pauses;
mod prefetch;
mod pump;
mod purge;
mod purging;
mod reading;
mod record;
mod recovery;
mod request;
mod route;
mod serving;
mod settings;
mod settling;
mod shared;
mod sources;
mod template;
#[cfg(test)]
mod test_bench;
mod upstreams;
mod visit;
mod word;

pub use answer::{CachedAnswer, Look};
pub use ask::{Ask, AskKey};
pub use baton_segment::layout::Grouping;
pub use baton_segment::policy::{FILM_BLOCKS_MIN, PolicyChoice, PolicyName};
pub use baton_segment::rules::{Arrival, Bypass, Key, QueryRule, RouteRules, Scheme};
pub use baton_store::NotDurable;
pub use counters::{CacheCounters, CacheStats, DiskStats};
pub use inventory::{SEGMENTS_SHOWN_MAX, SegmentParts, StoredParts};
pub use memory_share::MemoryShare;
pub use purge::{PurgeOrder, PurgeOutbox, PurgeRefusal};
pub use request::SourceRequest;
pub use route::CachedRoute;
pub use settings::{DiskSettings, Settings};
pub use shared::SharedCache;
pub use sources::Sources;
pub use upstreams::Upstreams;
pub use word::CacheWord;
