//! Goal: the committed fuzz corpora still pass. Method: every file through the same functions as the targets.

#[path = "../../../fuzz/src/documents.rs"]
pub mod invariants;
#[path = "../../../fuzz/src/replay.rs"]
pub mod replay;

#[test]
fn pages() {
    replay::replay("documents_page", invariants::page);
}

#[test]
fn words() {
    replay::replay("documents_words", invariants::words);
}
