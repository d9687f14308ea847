//! The numbers of pools on the status page.

use serde_json::{Map, Value, json};

use crate::pool::Pool;
use crate::{FailureReason, Protocol};

/// One pool.
pub(crate) fn pool(pool: &Pool) -> Value {
    let tally = &pool.tally;
    let answers: Map<_, _> =
        tally.answers.used().map(|(word, count)| (word.to_owned(), count.into())).collect();
    json!({
        "application": pool.application.name(),
        "address": pool.application.shown_address().to_string(),
        "transport": pool.negotiation.label(),
        "answers": answers,
        "passfd_withheld": pool.negotiation.withheld(),
        "connections": pool.open(),
        "idle": pool.idle(),
        "busy": pool.busy(),
        "tunnels": pool.tunnels(),
        "body_chunks": pool.application.chunks_in_use(),
        "waiting": pool.waiting(),
        "requests": tally.requests,
        "connections_opened": tally.opened,
        "retries": tally.retries,
        "failures": tally.failures,
        "abandoned": tally.abandoned,
        "is_origin": pool.application.settings().protocol == Protocol::Http1,
        "last_failure": tally.last_failure.map(FailureReason::label),
    })
}
