//! How often the bytes of an application's response are copied between processes and the kernel: counted, from outside.
//!
//! Server and application run unchanged under strace, which records how many bytes each call moved and on what kind
//! of descriptor. A call copies as many bytes as it returns; `sendfile` and `splice` copy none. The paper's ledger
//! (Yeung; three copies by FastCGI, one where the application answers for itself) is compared with sums of these.

mod ledger;
mod trace;

pub use ledger::{Ledger, Watch};
