//! The local document graph: a home server's documents, who links to whom, where each one is, and its load.

use super::PeerId;
use crate::Time;

/// A document of a home server. The number of a removed document is given to a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocumentId(pub u32);

impl DocumentId {
    /// The number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Who serves a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// Its home server.
    Home,
    /// A peer, and no other.
    Lent {
        /// The peer.
        to: PeerId,
        /// Since when.
        since: Time,
    },
}

/// All documents. Ids of documents that do not exist are ignored.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    documents: Vec<Document>,
    free: Vec<DocumentId>,
    links: usize,
    documents_max: usize,
    links_max: usize,
}

#[derive(Clone, Debug)]
struct Document {
    exists: bool,
    is_entry_point: bool,
    location: Location,
    /// Load since the interval began.
    load: u64,
    /// Without the document itself, in order, each once.
    links_to: Vec<DocumentId>,
    links_from: Vec<DocumentId>,
    /// How many of `links_from` are lent.
    lent_links_from: u32,
}

/// What the selection looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) document: DocumentId,
    pub(super) load: u64,
    /// Documents that link to it and are not at home.
    pub(super) lent_links_from: u32,
    pub(super) links_to: usize,
}

impl Graph {
    pub(super) const fn new(documents_max: usize, links_max: usize) -> Self {
        Self { documents: Vec::new(), free: Vec::new(), links: 0, documents_max, links_max }
    }

    pub(super) fn insert(&mut self, is_entry_point: bool) -> Option<DocumentId> {
        let document = Document {
            exists: true,
            is_entry_point,
            location: Location::Home,
            load: 0,
            links_to: Vec::new(),
            links_from: Vec::new(),
            lent_links_from: 0,
        };
        if let Some(id) = self.free.pop() {
            self.documents[id.index()] = document;
            return Some(id);
        }
        let id = DocumentId(u32::try_from(self.documents.len()).ok()?);
        if self.documents.len() >= self.documents_max {
            return None;
        }
        self.documents.push(document);
        Some(id)
    }

    /// Removes a document; says where it was.
    pub(super) fn remove(&mut self, id: DocumentId) -> Option<Location> {
        let location = self.location(id)?;
        self.set_location(id, Location::Home);
        self.set_links(id, &[]);
        let document = &mut self.documents[id.index()];
        document.exists = false;
        let links_from = std::mem::take(&mut document.links_from);
        self.links -= links_from.len();
        for from in links_from {
            self.documents[from.index()].links_to.retain(|&to| to != id);
        }
        self.free.push(id);
        Some(location)
    }

    /// Replaces the links of a document. False if there would be too many: then it has none.
    pub(super) fn set_links(&mut self, id: DocumentId, links: &[DocumentId]) -> bool {
        let Some(document) = self.get_mut(id) else { return false };
        let before = std::mem::take(&mut document.links_to);
        let is_lent = u32::from(document.location != Location::Home);
        self.links -= before.len();
        for to in before {
            let target = &mut self.documents[to.index()];
            target.links_from.retain(|&from| from != id);
            target.lent_links_from -= is_lent;
        }
        let mut links: Vec<DocumentId> =
            links.iter().copied().filter(|&to| to != id && self.get(to).is_some()).collect();
        links.sort_unstable();
        links.dedup();
        if self.links + links.len() > self.links_max {
            return false;
        }
        self.links += links.len();
        for to in &links {
            let target = &mut self.documents[to.index()];
            target.links_from.push(id);
            target.lent_links_from += is_lent;
        }
        self.documents[id.index()].links_to = links;
        true
    }

    pub(super) fn location(&self, id: DocumentId) -> Option<Location> {
        self.get(id).map(|document| document.location)
    }

    pub(super) fn load(&self, id: DocumentId) -> u64 {
        self.get(id).map_or(0, |document| document.load)
    }

    pub(super) fn links_from(&self, id: DocumentId) -> &[DocumentId] {
        self.get(id).map_or(&[], |document| &document.links_from)
    }

    pub(super) fn set_location(&mut self, id: DocumentId, location: Location) {
        let Some(document) = self.get_mut(id) else { return };
        let before = std::mem::replace(&mut document.location, location) != Location::Home;
        let now = location != Location::Home;
        if before == now {
            return;
        }
        let links_to = std::mem::take(&mut document.links_to);
        for to in &links_to {
            let count = &mut self.documents[to.index()].lent_links_from;
            *count = if now { *count + 1 } else { *count - 1 };
        }
        self.documents[id.index()].links_to = links_to;
    }

    /// Counts what the home server has answered, by its weight.
    pub(super) fn count(&mut self, id: DocumentId, weight: u64) {
        if let Some(document) = self.get_mut(id) {
            document.load = document.load.saturating_add(weight);
        }
    }

    /// Begins an interval.
    pub(super) fn reset_loads(&mut self) {
        self.documents.iter_mut().for_each(|document| document.load = 0);
    }

    /// The documents at home that are no well-known entry points, in the order of their ids.
    pub(super) fn candidates(&self) -> impl Iterator<Item = Candidate> + Clone {
        let at_home = self.existing().filter(|(_, document)| document.location == Location::Home);
        at_home.filter(|(_, document)| !document.is_entry_point).map(|(document, facts)| Candidate {
            document,
            load: facts.load,
            lent_links_from: facts.lent_links_from,
            links_to: facts.links_to.len(),
        })
    }

    /// The documents of a peer, and since when it has them.
    pub(super) fn lent_to(&self, peer: PeerId) -> impl Iterator<Item = (Time, DocumentId)> {
        self.existing().filter_map(move |(id, document)| match document.location {
            Location::Lent { to, since } if to == peer => Some((since, id)),
            _ => None,
        })
    }

    fn existing(&self) -> impl Iterator<Item = (DocumentId, &Document)> + Clone {
        (0..).map(DocumentId).zip(&self.documents).filter(|(_, document)| document.exists)
    }

    fn get(&self, id: DocumentId) -> Option<&Document> {
        self.documents.get(id.index()).filter(|document| document.exists)
    }

    fn get_mut(&mut self, id: DocumentId) -> Option<&mut Document> {
        self.documents.get_mut(id.index()).filter(|document| document.exists)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Links from lent documents are counted as they are, through any order of links, moves and removals.
        #[test]
        fn counts_follow_links_and_moves(
            steps in prop::collection::vec((0_u8..4, 0_u32..8, prop::collection::vec(0_u32..8, 0..5)), 0..120),
        ) {
            const LINKS_MAX: usize = 14;
            let mut graph = Graph::new(8, LINKS_MAX);
            for (step, document, links) in steps {
                let id = DocumentId(document);
                let links: Vec<DocumentId> = links.into_iter().map(DocumentId).collect();
                match step {
                    0 => { graph.insert(false); }
                    1 => { graph.remove(id); }
                    2 => { graph.set_links(id, &links); }
                    _ => {
                        let lent = Location::Lent { to: PeerId(0), since: 0 };
                        let location = if links.len().is_multiple_of(2) { Location::Home } else { lent };
                        graph.set_location(id, location);
                    }
                }
                let mut links = 0;
                for (id, document) in graph.existing() {
                    links += document.links_to.len();
                    let from: Vec<_> =
                        graph.existing().filter(|(_, other)| other.links_to.contains(&id)).collect();
                    let lent = from.iter().filter(|(_, other)| other.location != Location::Home).count();
                    prop_assert_eq!(document.links_from.len(), from.len());
                    prop_assert_eq!(document.lent_links_from as usize, lent);
                    prop_assert!(!document.links_to.contains(&id));
                }
                prop_assert_eq!(graph.links, links);
                prop_assert!(links <= LINKS_MAX && graph.documents.len() <= 8);
            }
        }
    }
}
