//! What all processes of an application have in common when they answer.

use crate::ledger::Ledger;
use crate::site::Folder;

/// What processes answer from, and where they write down what they are asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    pub(super) folder: &'a Folder,
    pub(super) ledger: &'a Ledger,
    /// The number of the connection, as long as the server has not closed it.
    pub(super) connection: Option<usize>,
}
