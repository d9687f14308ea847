//! Goal: the committed fuzz corpora still pass. Method: every file through the same functions as the targets.

#[path = "../../../fuzz/src/tls.rs"]
pub mod invariants;
#[path = "../../../fuzz/src/tls_moved.rs"]
pub mod moved_invariants;
#[path = "../../../fuzz/src/tls_pem.rs"]
pub mod pem_invariants;
#[path = "../../../fuzz/src/replay.rs"]
pub mod replay;

use replay::replay;

#[test]
fn handshakes() {
    replay("tls_handshake", invariants::handshake);
}

#[test]
fn pem_files() {
    replay("tls_pem", pem_invariants::pem);
}

#[test]
fn records() {
    replay("tls_records", invariants::records);
}

#[test]
fn origins() {
    replay("tls_origin", invariants::origin);
}

#[test]
fn connections_that_move() {
    replay("tls_moved", moved_invariants::moved);
}
