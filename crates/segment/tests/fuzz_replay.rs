//! Goal: the committed fuzz corpora still pass. Method: every file through the same functions as the targets.

#[path = "../../../fuzz/src/segment.rs"]
pub mod invariants;
#[path = "../../../fuzz/src/replay.rs"]
pub mod replay;

use replay::replay;

#[test]
fn rules() {
    replay("segment_rules", invariants::rules);
}

#[test]
fn cache_control() {
    replay("segment_cache_control", invariants::cache_control);
}
