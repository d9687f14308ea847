//! Goal: the committed fuzz corpora still pass. Method: every file through the same functions as the targets.

#[path = "../../../fuzz/src/responder.rs"]
pub mod invariants;
#[path = "../../../fuzz/src/pieces.rs"]
pub mod pieces;
#[path = "../../../fuzz/src/replay.rs"]
pub mod replay;

use replay::replay;

#[test]
fn connections() {
    replay("responder_connection", invariants::connection);
}

#[test]
fn variables() {
    replay("responder_variables", invariants::variables_of_params);
}
