//! Goal: the committed fuzz corpora still pass. Method: every file through the same functions as the targets.

#[path = "../../../fuzz/src/fcgi.rs"]
pub mod invariants;
#[path = "../../../fuzz/src/replay.rs"]
pub mod replay;

use replay::replay;

#[test]
fn responses() {
    replay("fcgi_response", invariants::response);
}

#[test]
fn requests() {
    replay("fcgi_application", invariants::application);
}

#[test]
fn params() {
    replay("fcgi_params", invariants::params);
}

#[test]
fn scgi() {
    replay("fcgi_scgi", invariants::scgi);
}

#[test]
fn heads() {
    replay("fcgi_head", invariants::head);
}

#[test]
fn maps_of_names() {
    replay("fcgi_zero_copy", invariants::zero_copy);
}

#[test]
fn offers() {
    replay("fcgi_offer", invariants::offer);
}
