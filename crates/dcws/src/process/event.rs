//! What happens to the process.

use std::sync::mpsc::Sender;

use super::scan::Folder;
use crate::settings::DocumentsSettings;
use crate::words::{Distrust, SignedMessage};
use crate::{AuthenticQuestion, Origin, ServedCounts};

/// An event, from one of the threads.
pub(super) enum Event {
    Configured(Box<DocumentsSettings>),
    Served(Origin, ServedCounts),
    /// The master asks where the document at a path is.
    Tell(u64, String),
    /// The master is gone.
    Ended,
    /// The head of a question has come, with this signature field.
    Announced(String, Sender<Result<AuthenticQuestion, Distrust>>),
    /// A peer asks.
    Asked(PeerQuestion),
    /// A peer has replied, or not.
    Replied {
        site: Origin,
        peer: usize,
        reply: Result<(Vec<u8>, String), String>,
    },
    /// What is in a folder.
    Scanned {
        site: Origin,
        scanned: Folder,
    },
}

/// A question on its way to its answer.
pub(super) struct PeerQuestion {
    /// The site that is asked.
    pub(super) site: Origin,
    pub(super) admitted: AuthenticQuestion,
    pub(super) body: Vec<u8>,
    pub(super) reply: Sender<Result<SignedMessage, Distrust>>,
}
