//! Goal: no input that ever mattered to a fuzz target breaks what it asserts again. Method: every file of
//! the committed corpora, through the same functions as the targets.

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
