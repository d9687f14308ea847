//! A site as a graph: documents, the links that clients follow, and what pages embed.

use baton_dispatch::migration::{DocumentId, HomeServer};

/// A site.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DocumentSite {
    /// What to call it in figures.
    pub name: String,
    pub(super) documents: Vec<Document>,
    /// Where walks begin, each as often as it is to be drawn.
    pub(super) starts: Vec<u32>,
}

/// A page, or what a page embeds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Document {
    pub(super) bytes: u64,
    /// Whether it never migrates: a well-known entry point, or what an application makes.
    pub(super) stays: bool,
    /// Where a client may go from here, each as often as it is to be drawn.
    pub(super) links: Vec<u32>,
    /// What a client requests with the page.
    pub(super) embedded: Vec<u32>,
}

/// The numbers of a site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiteFacts {
    /// Pages and embedded objects.
    pub documents: usize,
    /// Of these well-known entry points.
    pub entry_points: usize,
    /// Links, embedded objects counted like links.
    pub links: usize,
    /// Bytes of all documents.
    pub bytes: u64,
    /// How many pages embed the object that most pages embed.
    pub embedded_most: usize,
}

impl DocumentSite {
    /// The numbers.
    #[must_use]
    pub fn facts(&self) -> SiteFacts {
        let mut embedded_by = vec![0; self.documents.len()];
        for &object in self.documents.iter().flat_map(|document| &document.embedded) {
            embedded_by[object as usize] += 1;
        }
        SiteFacts {
            documents: self.documents.len(),
            entry_points: self.entry_points().len(),
            links: self
                .documents
                .iter()
                .map(|document| distinct(&document.links) + document.embedded.len())
                .sum(),
            bytes: self.documents.iter().map(|document| document.bytes).sum(),
            embedded_most: embedded_by.into_iter().max().unwrap_or(0),
        }
    }

    pub(super) fn entry_points(&self) -> Vec<u32> {
        let mut entry_points = self.starts.clone();
        entry_points.sort_unstable();
        entry_points.dedup();
        entry_points
    }

    /// The page that becomes hot: in the middle of those to which links lead and that may migrate. None if there is no
    /// such page.
    pub(super) fn hot_page(&self) -> Option<u32> {
        let mut pages: Vec<u32> =
            self.documents.iter().flat_map(|document| document.links.iter().copied()).collect();
        pages.retain(|&page| !self.documents[page as usize].stays);
        pages.sort_unstable();
        pages.dedup();
        pages.get(pages.len() / 2).copied()
    }

    /// Tells a home server of all documents and links. The ids there are the positions here.
    pub(super) fn tell(&self, home: &mut HomeServer) {
        for document in &self.documents {
            home.insert(document.stays);
        }
        for (id, document) in (0..).map(DocumentId).zip(&self.documents) {
            let links = document.links.iter().chain(&document.embedded);
            let links: Vec<DocumentId> = links.copied().map(DocumentId).collect();
            home.set_links(id, &links);
        }
    }
}

fn distinct(links: &[u32]) -> usize {
    let mut links = links.to_vec();
    links.sort_unstable();
    links.dedup();
    links.len()
}
