//! Goal: the committed fuzz corpus still passes. Method: every file through the same function as the target.

#[path = "../../../fuzz/src/names.rs"]
pub mod invariants;
#[path = "../../../fuzz/src/replay.rs"]
pub mod replay;

#[test]
fn answers() {
    replay::replay("names_answer", invariants::answer);
}
