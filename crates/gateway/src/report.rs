//! What is told of pools: the numbers of a status page.

use serde_json::{Value, json};

use crate::Why;
use crate::pool::Pool;

/// What happened in a pool since it was made.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    pub(crate) opened: u64,
    pub(crate) closed: u64,
    pub(crate) retries: u64,
    pub(crate) failures: u64,
    pub(crate) abandoned: u64,
    pub(crate) last_failure: Option<Why>,
}

impl Tally {
    pub(crate) fn note_failure(&mut self, why: Why) {
        if why.is_clients() {
            self.abandoned += 1;
            return;
        }
        self.failures += 1;
        self.last_failure = Some(why);
    }
}

/// One pool.
pub(crate) fn pool(pool: &Pool) -> Value {
    let tally = &pool.tally;
    json!({
        "application": pool.application.name(),
        "address": pool.application.shown_address().to_string(),
        "transport": pool.negotiation.label(),
        "passfd_withheld": pool.negotiation.withheld(),
        "connections": pool.open(),
        "idle": pool.idle(),
        "busy": pool.busy(),
        "waiting": pool.waiting(),
        "requests": tally.requests,
        "connections_opened": tally.opened,
        "retries": tally.retries,
        "failures": tally.failures,
        "abandoned": tally.abandoned,
        "last_failure": tally.last_failure.map(Why::label),
    })
}
