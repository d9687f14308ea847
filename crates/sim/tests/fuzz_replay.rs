//! Goal: no log that ever mattered to the fuzz target breaks what it asserts again. Method: every file of the committed
//! corpus, through the same function as the target.

#[path = "../../../fuzz/src/sim.rs"]
pub mod invariants;
#[path = "../../../fuzz/src/replay.rs"]
pub mod replay;

#[test]
fn access_logs() {
    replay::replay("sim_access_log", invariants::access_log);
}
