//! Where documents are that migrate, as the plans of a worker share it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use baton_dcws::Origin;
use baton_site::documents::Documents;

/// What a worker shares between its plans: where documents are, by the URL of their site.
#[derive(Debug, Default)]
pub struct DocumentsOfWorker {
    /// Unix socket of the process that peers' questions go to.
    pub socket: PathBuf,
    sites: Mutex<Vec<(Origin, Arc<Documents>)>>,
}

impl DocumentsOfWorker {
    /// With the socket of the process.
    pub fn new(socket: PathBuf) -> Self {
        Self { socket, sites: Mutex::default() }
    }

    /// The documents of the site with that URL.
    pub fn of(&self, at: &Origin) -> Arc<Documents> {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, documents)) = sites.iter().find(|(known, _)| known == at) {
            return Arc::clone(documents);
        }
        let documents = Arc::new(Documents::new(at.clone()));
        sites.push((at.clone(), Arc::clone(&documents)));
        documents
    }

    /// All sites.
    pub fn all(&self) -> Vec<(Origin, Arc<Documents>)> {
        self.sites.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
