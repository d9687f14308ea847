//! What an application was asked, and the laws for how often.

use std::cell::RefCell;
use std::collections::BTreeSet;

/// What the application of a world was asked.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Numbers of requests that change something.
    changes: RefCell<BTreeSet<usize>>,
}

impl Ledger {
    /// The application has read a request with this number.
    ///
    /// # Panics
    /// If it may not be repeated, and was.
    pub(crate) fn note(&self, method: &str, number: usize) {
        if method == "POST" {
            assert!(self.changes.borrow_mut().insert(number), "POST {number} comes twice");
        }
    }
}
