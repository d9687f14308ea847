//! The bytes of the shared cache, in memory and in files that survive a crash.
//!
//! An *object* is a record, which is the owner's (head, validator, lengths, times), and *blocks* of its content. The
//! store keeps both, finds them again after a restart, and serves blocks as slices of buffers or as ranges of open
//! files, so that a hit leaves like a static file. What is worth keeping the owner of the index decides.
//!
//! ```text
//!   loops ── put_object, put_block ──► queue ──► writer ──► slots-4k … slots-256k    blocks, in slots
//!     ▲                                 (bounded)   │  └───► journal                  records, places of blocks
//!     │                                             ▼
//!     └── object, block ◄────────────── table: what is where, in 64 shards
//! ```
//!
//! A cache may forget, but never lie:
//!
//! - The journal is a prefix of what was done, or void. It holds a checksum of each block, which depends on the block's
//!   name and is compared at the first read after a start.
//! - A slot that is sent by reference keeps its bytes until the last slice of it is dropped. Before it is written again
//!   its range of the file is deallocated, since the kernel may be sending its pages for longer.
//! - What was removed is gone after a crash, too, once a [`Store::sync`] has succeeded.
//!
//! A disk that is read-only, broken, gone or in use by another process costs nothing but hits: the store goes on in
//! memory, says so once, and tries again after 1 s, 2 s … 60 s. On a full one new blocks take the place of others.

mod checksum;
mod compaction;
mod disk;
mod disk_failure;
mod file_range;
mod folder;
mod health;
mod identity;
pub mod journal;
mod key;
mod object;
mod objects;
mod page_in;
mod probe;
mod queue;
mod reading;
mod replay;
mod settings;
mod shared;
mod slots;
mod stats;
mod store;
mod table;
mod volume;
mod write_back;
mod writer;

pub use baton_sys::blocking::{Blocking, NeedsDisk};
pub use disk_failure::DiskFailure;
pub use folder::{check_folder, prepare_folder, remove_folder};
pub use identity::Identity;
pub use journal::frame::RECORD_BYTES_MAX;
pub use key::{BlockId, Key};
pub use objects::{Objects, WalkedObject};
pub use queue::{NotDurable, Reuse};
pub use reading::StoredObject;
pub use settings::StoreSettings;
pub use stats::{DiskState, Stats};
pub use store::{NotStored, Store};
