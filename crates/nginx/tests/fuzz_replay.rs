//! Goal: the committed fuzz corpus still passes. Method: every file through the same function as the target.

#[path = "../../../fuzz/src/nginx.rs"]
pub mod invariants;
#[path = "../../../fuzz/src/replay.rs"]
pub mod replay;

#[test]
fn configurations() {
    replay::replay("nginx_configuration", invariants::configuration);
}
