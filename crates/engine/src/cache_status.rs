//! The file caches in the worker's status.

use baton_content::{Cache, HitStats};
use serde_json::{Value, json};

/// How the file caches are doing.
pub(crate) fn report(cache: &Cache) -> Value {
    let stats = cache.stats();
    let hits = |stats: HitStats| {
        json!({
            "hits": stats.hits,
            "misses": stats.misses,
            "entries": stats.entries,
            "evictions": stats.evictions,
        })
    };
    json!({
        "names": hits(stats.names),
        "files": hits(stats.files),
        "heads": { "hits": stats.heads.hits, "misses": stats.heads.misses },
        "in_memory": stats.in_memory,
        "memory_bytes": stats.memory_bytes,
        "revalidations": stats.revalidations,
        "changes": stats.changes,
        "needs_disk": stats.needs_disk,
    })
}
