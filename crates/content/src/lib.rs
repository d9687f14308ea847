//! Static files: finds the file for a path, with its bytes and head ready to send.
//!
//! The caches are those of Flash (Pai, Druschel, Zwaenepoel, 1999): names, files, heads.
//!
//! ```text
//!   Query ──► Cache::find ──► Found::File(Stored) ──► Stored::whole ──► head and body
//!                 │
//!       names     │  known and fresh: no system call
//!         │ unknown, old                       ┌ memory       small and hot files, in bytes (LRU or GDS)
//!         ▼                                    │
//!      resolve ──► look at it (O_PATH) ──► files            by device and inode
//!                                              │
//!                                              └ descriptors  larger ones, kept open     (LRU)
//! ```
//!
//! A [`Tree`] is a folder with its configuration. The kernel resolves all paths beneath its root (`openat2`); results
//! are cached for at most `revalidate_ms`.
//!
//! The same call serves loops that must not wait and helpers that may: with [`Blocking::Never`] anything that is not
//! in the kernel's caches is [`NeedsDisk`]; a helper repeats the call and fills the caches (the AMPED architecture).

mod allowance;
mod cache;
mod candidate;
mod coded;
mod coded_forms;
mod disk;
mod hidden_link;
mod link_search;
mod listing;
mod load;
mod lookup;
mod name;
mod policy;
mod presentation;
mod query;
mod reply;
mod resolve;
mod roots;
mod settings;
mod source_code;
mod stats;
mod stored;
mod table;
mod tree;
mod tree_config;
mod variant;

pub use cache::Cache;
pub use candidate::{BadCandidate, Candidate};
pub use coded::{Coded, ToCode};
pub use disk::{Blocking, NeedsDisk};
pub use hidden_link::HiddenLink;
pub use listing::{Listed, View};
pub use policy::Policy;
pub use query::{Found, Query};
pub use reply::{BodySource, HeadForm, Whole};
pub use roots::Roots;
pub use settings::{CacheSettings, MEMORY_FILE_BYTES_LIMIT};
pub use source_code::is_named_like_a_script;
pub use stats::{CacheStats, HitStats};
pub use stored::Stored;
pub use tree::Tree;
pub use tree_config::{CacheRule, Listing, Symlinks, TreeConfig};
pub use variant::Variant;
