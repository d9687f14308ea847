//! Goal: the committed fuzz corpus still passes. Method: every file through the same function as the target.

#[path = "../../../fuzz/src/iolite.rs"]
pub mod invariants;
#[path = "../../../fuzz/src/replay.rs"]
pub mod replay;

#[test]
fn what_writers_send() {
    replay::replay("iolite_writer", invariants::writer);
}
