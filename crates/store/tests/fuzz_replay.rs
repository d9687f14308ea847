//! Goal: the committed fuzz corpus still passes. Method: every file through the same function as the target.

#[path = "../../../fuzz/src/store.rs"]
pub mod invariants;
#[path = "../../../fuzz/src/replay.rs"]
pub mod replay;

#[test]
fn journals() {
    replay::replay("store_journal", invariants::journal);
}
