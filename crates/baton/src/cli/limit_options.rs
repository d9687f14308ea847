//! What the configuration says about the limits of all processes alike, as the master tells those that it starts.

use baton_config::{Words, word_of};
use baton_confine::{Calls, Limits};
use clap::Args;

#[derive(Debug, Args)]
pub(super) struct LimitOptions {
    /// What becomes of system calls that it has no use for.
    #[arg(long, default_value = word_of(Calls::Enforce))]
    system_calls: String,
    /// Whether debuggers of the same user may look at it.
    #[arg(long)]
    debuggable: bool,
}

impl LimitOptions {
    pub(super) fn limits(&self) -> Limits {
        let calls = Calls::words().into_iter().find(|(word, ..)| *word == self.system_calls);
        let calls = calls.map(|(_, calls, _)| calls).unwrap_or_default();
        Limits { calls, is_debuggable: self.debuggable, ..Limits::default() }
    }
}
