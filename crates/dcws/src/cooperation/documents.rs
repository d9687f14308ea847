//! The documents of a site: what is in its folder, by path, and their numbers in the policy and in the map.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use baton_dispatch::migration::{DocumentId, HomeServer};

use crate::links::Use;
use crate::rules::Stays;

/// A file of the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentFile {
    /// Changes with its contents.
    pub stamp: FileStamp,
    /// Other names by which it is asked for: of an index, that of its folder.
    pub aliases: Vec<String>,
    /// Names of what it links to, and how it uses that.
    pub links: Vec<(String, Use)>,
    /// Why its type, its path or its age keep it at home; `None`: they let it move.
    pub stays: Option<Stays>,
}

/// What changes with the contents of a file: inode, size, time of the last change.
pub type FileStamp = (u64, u64, i64, i64);

#[derive(Debug, Default)]
pub(super) struct Documents {
    by_name: BTreeMap<String, Document>,
    /// By their numbers in the map.
    numbered: Vec<String>,
    numbering: u64,
    by_id: HashMap<DocumentId, u32>,
}

#[derive(Debug)]
struct Document {
    id: DocumentId,
    scanned: DocumentFile,
    may_move: bool,
}

impl Documents {
    /// Takes what there is now. Returns documents that are gone or have changed: their places are forgotten.
    pub(super) fn handle_scan(
        &mut self,
        scanned: BTreeMap<String, DocumentFile>,
        home: &mut HomeServer,
    ) -> Vec<DocumentId> {
        let aliases =
            scanned.iter().flat_map(|(name, one)| one.aliases.iter().map(move |alias| (alias, name)));
        let aliases: HashMap<String, String> =
            aliases.map(|(alias, name)| (alias.clone(), name.clone())).collect();
        let target = |name: &'_ String| -> Option<String> {
            let name = aliases.get(name).unwrap_or(name);
            scanned.contains_key(name).then(|| name.clone())
        };
        let pinned = scanned.values().flat_map(|one| &one.links).filter(|(_, used)| *used == Use::Pins);
        let pinned: BTreeSet<String> = pinned.filter_map(|(name, _)| target(name)).collect();
        let links = |one: &DocumentFile| -> BTreeSet<String> {
            one.links
                .iter()
                .filter(|(_, used)| *used == Use::Moves)
                .filter_map(|(name, _)| target(name))
                .collect()
        };
        let links: Vec<(String, BTreeSet<String>)> =
            scanned.iter().map(|(name, one)| (name.clone(), links(one))).collect();

        let mut gone = Vec::new();
        let names_before: Vec<(String, Vec<String>)> = self.names_of_all();
        self.by_name.retain(|name, document| {
            let stays = scanned.get(name).is_some_and(|now| {
                let may_move = now.stays.is_none() && !pinned.contains(name);
                now.stamp == document.scanned.stamp && may_move == document.may_move
            });
            if !stays {
                home.remove(document.id);
                gone.push(document.id);
            }
            stays
        });
        for (name, one) in scanned {
            let may_move = one.stays.is_none() && !pinned.contains(&name);
            if let Some(document) = self.by_name.get_mut(&name) {
                document.scanned = one;
            } else if let Some(id) = home.insert(!may_move) {
                self.by_name.insert(name, Document { id, scanned: one, may_move });
            }
        }
        for (name, to) in links {
            let Some(document) = self.by_name.get(&name) else { continue };
            let to: Vec<DocumentId> =
                to.iter().filter_map(|name| self.by_name.get(name)).map(|one| one.id).collect();
            home.set_links(document.id, &to);
        }
        if names_before != self.names_of_all() {
            self.numbering += 1;
            self.numbered = self.by_name.keys().cloned().collect();
        }
        let numbers = (0..).zip(&self.numbered);
        self.by_id =
            numbers.filter_map(|(number, name)| Some((self.by_name.get(name)?.id, number))).collect();
        gone
    }

    pub(super) fn numbering(&self) -> u64 {
        self.numbering
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn movable(&self) -> usize {
        self.by_name.values().filter(|document| document.may_move).count()
    }

    pub(super) fn id(&self, number: u32) -> Option<DocumentId> {
        let name = self.numbered.get(number as usize)?;
        self.by_name.get(name).map(|document| document.id)
    }

    pub(super) fn number_and_name(&self, id: DocumentId) -> Option<(u32, &str)> {
        let number = *self.by_id.get(&id)?;
        Some((number, self.numbered.get(number as usize)?))
    }

    pub(super) fn name(&self, number: u32) -> Option<&str> {
        self.numbered.get(number as usize).map(String::as_str)
    }

    /// The document that is asked for by this name, its first name, and why its file keeps it at home.
    pub(super) fn find(&self, name: &str) -> Option<(DocumentId, &str, Option<Stays>)> {
        let is_its = |(own, document): &(&String, &Document)| {
            *own == name || document.scanned.aliases.iter().any(|alias| alias == name)
        };
        let (own, document) = self.by_name.iter().find(is_its)?;
        Some((document.id, own, document.scanned.stays))
    }

    /// The documents that use this one in a way that needs its own origin, so that it stays.
    pub(super) fn pinned_by(&self, id: DocumentId) -> impl Iterator<Item = &str> {
        let names: Vec<&String> = self.names(id).into_iter().flatten().collect();
        let pins = move |document: &Document| {
            document.scanned.links.iter().any(|(to, used)| *used == Use::Pins && names.contains(&to))
        };
        self.by_name.iter().filter(move |(_, document)| pins(document)).map(|(name, _)| name.as_str())
    }

    /// All names of a document.
    pub(super) fn names(&self, id: DocumentId) -> Option<impl Iterator<Item = &String>> {
        let (_, name) = self.number_and_name(id)?;
        let (name, document) = self.by_name.get_key_value(name)?;
        Some(std::iter::once(name).chain(&document.scanned.aliases))
    }

    /// The names of each document, by number.
    pub(super) fn all_names(&self) -> Vec<Vec<String>> {
        self.names_of_all().into_iter().map(|(_, names)| names).collect()
    }

    fn names_of_all(&self) -> Vec<(String, Vec<String>)> {
        let names = |(name, document): (&String, &Document)| {
            let all = std::iter::once(name).chain(&document.scanned.aliases).cloned().collect();
            (name.clone(), all)
        };
        self.by_name.iter().map(names).collect()
    }
}
