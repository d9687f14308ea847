//! `amped`: asymmetric multi-process, event-driven.
//!
//! One loop as in `sped`, which never touches what might not be in memory: before it opens a file or sends a range
//! it asks whether that would wait for the disk, and if so gives the job to a helper and serves others meanwhile.
//! The helper opens the file or reads the pages, so that the loop finds them in memory, and reports by an event.
//!
//! ```text
//!   ┌──────────────── one thread ────────────────┐        helpers
//!   │ accept → read → find file → send           │  job   ┌────────┐
//!   │   ▲       would it wait? ──────────────────┼──────► │ open,  │┐
//!   │   └───────────── epoll ◄───────────────────┼─────── │ read   ││┐
//!   └────────────────────────────────────────────┘  done  └────────┘││
//!                                                           └───────┘│
//! ```
//!
//! Source: Pai 1999, sections 4.2.4 and 4.4 (Flash). Flash's helpers were processes because threads could not be had
//! everywhere in 1999, and its test was `mincore`; here they are threads, and the tests are `RESOLVE_CACHED` and
//! `RWF_NOWAIT`, which say the same without a mapping, and also to a process that does not own the files.

use std::io;
use std::os::fd::BorrowedFd;

use baton_content::Blocking;
use baton_session::job::Job;
use baton_session::session::{Session, Wake};
use baton_shares::ClientKey;
use serde_json::{Value, json};

use super::{Architecture, ListenerSharing};
use crate::clients::Token;
use crate::event_loop::Jobs;
use crate::helpers::Helpers;
use crate::process::Process;

pub(super) const ARCHITECTURE: Architecture = Architecture {
    processes: |_, _| 1,
    listeners: ListenerSharing::Shared,
    loops: |_| 1,
    held_up_by_a_slow_client: Some("the disk jobs of all others: it would hold a helper"),
    adapt: |_| (),
    serve,
};

fn serve(process: &Process) -> io::Result<()> {
    baton_sys::memory::share_heaps();
    let ctx = process.context(process.cache(1), Blocking::Never);
    let helpers = Helpers::new(process.tuning.helpers_max)?;
    process.event_loop::<Box<Session>, _>("loop", ctx, helpers, None)?.run(process.heartbeats.heart(0))
}

impl<C> Jobs<C> for Helpers {
    fn begin(&mut self, whose: Token, client: Option<ClientKey>, job: Job) {
        self.submit(whose, client, job);
    }

    fn forget(&mut self, whose: Token) {
        Self::forget(self, whose);
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(Self::descriptor(self))
    }

    fn take_done(&mut self, into: &mut Vec<(Token, Wake)>) {
        Self::take_done(self, into);
    }

    fn report(&self) -> Value {
        json!({ "helpers": self.count(), "helpers_max": self.helpers_max(), "under_way": self.under_way() })
    }
}
