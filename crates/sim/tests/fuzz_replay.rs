//! Goal: the committed fuzz corpus still passes. Method: every file through the same function as the target.

#[path = "../../../fuzz/src/sim.rs"]
pub mod invariants;
#[path = "../../../fuzz/src/replay.rs"]
pub mod replay;

#[test]
fn access_logs() {
    replay::replay("sim_access_log", invariants::access_log);
}
