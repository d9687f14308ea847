//! Where the documents of a site are, as the workers are told: by the process, whenever something moves.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::{Origin, copy_address, copy_tag};

/// Where documents are. Documents are numbered; their names are decoded paths without a slash in front, as in URLs that
/// [`encode`](crate::encode) writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Map {
    /// The site.
    pub home: Origin,
    /// Changes with the numbers of documents.
    pub numbering: u64,
    /// The names of each document: its path, and that of the folder whose index it is.
    pub documents: Vec<Vec<String>>,
    /// The other servers.
    pub peers: Vec<Origin>,
    /// Documents that a peer serves.
    pub away: Vec<(u32, u32)>,
    /// Pages with links to such documents; what tells their states apart, a hash of where these are; and since when they are
    /// so, in seconds since 1970.
    pub pages: Vec<(u32, u64, u64)>,
    /// The names of documents that each peer lends to this server, each with a number that is another one when it is lent
    /// anew. None: the peer has not said so to this process yet.
    pub held: Vec<Option<Vec<(String, u64)>>>,
}

/// Where documents are, ready for requests, and what these count.
#[derive(Debug)]
pub struct Book {
    home: Origin,
    by_name: HashMap<Vec<u8>, u32>,
    peers: Vec<Origin>,
    away: HashMap<u32, u32>,
    pages: HashMap<u32, (u64, u64)>,
    held: Vec<Option<HashMap<Vec<u8>, u64>>>,
    counts: Arc<Counts>,
}

/// What was answered since the last report.
#[derive(Debug, Default)]
pub struct Counts {
    numbering: u64,
    documents: Vec<Answered>,
    redirects: Answered,
    copies: Answered,
    others: Answered,
}

/// Requests that were answered, and bytes of bodies.
#[derive(Debug, Default)]
struct Answered {
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl Answered {
    fn count(&self, bytes: u64) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn take(&self) -> (u64, u64) {
        (self.requests.swap(0, Ordering::Relaxed), self.bytes.swap(0, Ordering::Relaxed))
    }

    /// One that begins with what this one has counted.
    fn moved(&self) -> Self {
        let (requests, bytes) = self.take();
        Self { requests: requests.into(), bytes: bytes.into() }
    }
}

/// A request that counts, once its response has ended.
#[derive(Debug)]
pub struct CountedRequest {
    book: Arc<Book>,
    requested: Requested,
}

impl CountedRequest {
    /// A request that gets this.
    pub fn new(book: &Arc<Book>, requested: Requested) -> Self {
        Self { book: Arc::clone(book), requested }
    }

    /// Its response has ended, after so many bytes of the body.
    pub fn end(self, bytes: u64) {
        self.book.count(self.requested, bytes);
    }
}

/// What a request got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requested {
    /// A document that is here, by its number if it has one.
    Document(Option<u32>),
    /// The address where a document is.
    Redirect,
    /// A copy of a peer's document.
    Copy,
    /// A document that a peer is lent, for that peer.
    Fetch,
}

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedCounts {
    /// [`Map::numbering`].
    pub numbering: u64,
    /// By document: requests, and bytes of bodies.
    pub documents: Vec<(u32, u64, u64)>,
    /// Requests that got the address where the document is.
    pub redirects: u64,
    /// Requests for copies of other servers' documents.
    pub copies: u64,
    /// Further requests that count for the load.
    pub others: u64,
    /// Bytes of bodies of redirects, copies and others.
    pub other_bytes: u64,
}

impl Book {
    /// A book of a map. It goes on counting where the last one did, if documents have the same numbers, and keeps what a peer
    /// has lent until the peer says anew what it lends.
    pub fn new(map: &Map, last: &Self) -> Self {
        let is_same =
            last.counts.numbering == map.numbering && last.counts.documents.len() == map.documents.len();
        let counts = match is_same {
            true => Arc::clone(&last.counts),
            false => Arc::new(Counts {
                numbering: map.numbering,
                documents: map.documents.iter().map(|_| Answered::default()).collect(),
                redirects: last.counts.redirects.moved(),
                copies: last.counts.copies.moved(),
                others: last.counts.others.moved(),
            }),
        };
        let names = (0..).zip(&map.documents);
        let by_name = names.flat_map(|(number, names)| names.iter().map(move |name| (decoded(name), number)));
        let held = |(peer, names): (&Origin, &Option<Vec<(String, u64)>>)| match names {
            Some(names) => Some(names.iter().map(|(name, since)| (decoded(name), *since)).collect()),
            None => last.held.get(last.peers.iter().position(|known| known == peer)?).cloned().flatten(),
        };
        Self {
            home: map.home.clone(),
            by_name: by_name.collect(),
            peers: map.peers.clone(),
            away: map.away.iter().copied().filter(|(_, peer)| (*peer as usize) < map.peers.len()).collect(),
            pages: map.pages.iter().map(|&(page, state, since)| (page, (state, since))).collect(),
            held: map.peers.iter().zip(&map.held).map(held).collect(),
            counts,
        }
    }

    /// A book before the first map.
    pub fn empty(home: Origin) -> Self {
        Self {
            home,
            by_name: HashMap::new(),
            peers: Vec::new(),
            away: HashMap::new(),
            pages: HashMap::new(),
            held: Vec::new(),
            counts: Arc::default(),
        }
    }

    /// The number of the document with that decoded path.
    pub fn number(&self, path: &[u8]) -> Option<u32> {
        self.by_name.get(path).copied()
    }

    /// Whether a peer serves the document.
    pub fn is_away(&self, number: u32) -> bool {
        self.away.contains_key(&number)
    }

    /// The address of the document of that decoded path, if a peer serves it.
    pub fn address(&self, path: &[u8]) -> Option<String> {
        let peer = *self.away.get(&self.number(path)?)?;
        Some(copy_address(&self.peers[peer as usize], &self.home, path))
    }

    /// What tells the state of a page's links, and since when it is so; none if no document that it links to is away.
    pub fn page(&self, number: u32) -> Option<(u64, u64)> {
        self.pages.get(&number).copied()
    }

    /// Whether this server may serve that document of a peer, by its place among [`Map::peers`]: if the peer has said so.
    pub fn may_serve(&self, peer: usize, path: &[u8]) -> bool {
        self.held.get(peer).and_then(Option::as_ref).is_some_and(|held| held.contains_key(path))
    }

    /// The tags of copies that were lent to this server and are no longer, or are lent anew, by the book that takes this one's place.
    pub fn withdrawn(&self, newer: &Self) -> Vec<String> {
        let pairs = self.peers.iter().zip(&self.held).filter_map(|(peer, held)| {
            let index = newer.peers.iter().position(|other| other == peer)?;
            Some((peer, held.as_ref()?, newer.held.get(index)?.as_ref()?))
        });
        let gone = pairs.flat_map(|(peer, held, now)| {
            let is_gone = |(name, since): &(&Vec<u8>, &u64)| now.get(*name) != Some(*since);
            held.iter().filter(is_gone).map(|(name, _)| copy_tag(peer, name)).collect::<Vec<_>>()
        });
        gone.collect()
    }

    /// Counts a request whose response has so many bytes.
    fn count(&self, requested: Requested, bytes: u64) {
        let cell = match requested {
            Requested::Document(number) => number
                .and_then(|number| self.counts.documents.get(number as usize))
                .unwrap_or(&self.counts.others),
            Requested::Redirect => &self.counts.redirects,
            Requested::Copy => &self.counts.copies,
            Requested::Fetch => &self.counts.others,
        };
        cell.count(bytes);
    }

    /// What has been counted since the last call, in parts of so many documents. Nothing: no parts.
    pub fn take_served(&self, documents_max: usize) -> Vec<ServedCounts> {
        let counted = (0..).zip(&self.counts.documents);
        let counted: Vec<(u32, u64, u64)> = counted
            .map(|(number, answered)| (number, answered.take()))
            .filter(|(_, (requests, _))| *requests > 0)
            .map(|(number, (requests, bytes))| (number, requests, bytes))
            .collect();
        let numbering = self.counts.numbering;
        let part =
            |part: &[_]| ServedCounts { numbering, documents: part.to_vec(), ..ServedCounts::default() };
        let mut parts: Vec<_> = counted.chunks(documents_max.max(1)).map(part).collect();
        let Counts { redirects, copies, others, .. } = &*self.counts;
        let others = [redirects, copies, others].map(Answered::take);
        let [(redirects, _), (copies, _), (rest, _)] = others;
        if redirects + copies + rest > 0 {
            let other_bytes = others.iter().map(|(_, bytes)| bytes).sum();
            let documents = Vec::new();
            parts.push(ServedCounts { numbering, documents, redirects, copies, others: rest, other_bytes });
        }
        parts
    }
}

/// A name as it is looked up.
pub(crate) fn decoded(name: &str) -> Vec<u8> {
    let mut path = Vec::new();
    match baton_http::decode_path(format!("/{name}").as_bytes(), &mut path) {
        Ok(()) => path,
        // No request can have it.
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(numbering: u64, away: &[(u32, u32)]) -> Map {
        Map {
            home: "http://a:8080".parse().unwrap(),
            numbering,
            documents: vec![vec!["index.html".into(), String::new()], vec!["p%20q.png".into()]],
            peers: vec!["http://b".parse().unwrap()],
            away: away.to_vec(),
            pages: vec![(0, 7, 1_000)],
            held: vec![Some(vec![("x.png".into(), 3)])],
        }
    }

    #[test]
    fn a_book_knows_what_its_map_says() {
        let book = Book::new(&map(1, &[(1, 0), (0, 9)]), &Book::empty("http://a:8080".parse().unwrap()));
        assert_eq!(
            (book.number(b""), book.number(b"index.html"), book.number(b"p q.png")),
            (Some(0), Some(0), Some(1))
        );
        assert_eq!(book.address(b"p q.png").unwrap(), "http://b/~migrate/a/8080/p%20q.png");
        assert_eq!((book.address(b"index.html"), book.page(0), book.page(1)), (None, Some((7, 1_000)), None));
        assert!(book.may_serve(0, b"x.png") && !book.may_serve(0, b"y.png") && !book.may_serve(1, b"y.png"));
        let silent = Book::new(&Map { held: vec![None], ..map(2, &[]) }, &book);
        assert!(silent.may_serve(0, b"x.png") && !silent.may_serve(0, b"y.png"), "another process has begun");
        let others = Map { peers: vec!["http://c".parse().unwrap()], held: vec![None], ..map(2, &[]) };
        assert!(!Book::new(&others, &book).may_serve(0, b"x.png"));
    }

    #[test]
    fn withdrawn_copies_are_known_by_their_tags() {
        let empty = Book::empty("http://a:8080".parse().unwrap());
        let before = Book::new(&map(1, &[]), &empty);
        let after = |held| Book::new(&Map { held: vec![held], ..map(1, &[]) }, &before);
        assert_eq!(before.withdrawn(&after(Some(vec![]))), ["http://b/x.png"]);
        assert_eq!(
            before.withdrawn(&after(Some(vec![("x.png".into(), 4)]))),
            ["http://b/x.png"],
            "lent anew"
        );
        assert!(before.withdrawn(&before).is_empty() && before.withdrawn(&after(None)).is_empty());
        assert!(empty.withdrawn(&before).is_empty());
    }

    #[test]
    fn counts_go_on_with_the_same_numbers_only() {
        let first = Book::new(&map(1, &[]), &Book::empty("http://a:8080".parse().unwrap()));
        let document = |number| Requested::Document(Some(number));
        first.count(document(1), 10);
        first.count(Requested::Document(None), 10);
        first.count(document(7), 10);
        first.count(Requested::Redirect, 10);
        first.count(Requested::Fetch, 10);
        let second = Book::new(&map(1, &[(1, 0)]), &first);
        second.count(document(1), 10);
        second.count(Requested::Copy, 10);
        let parts = second.take_served(1);
        assert_eq!(
            parts[0],
            ServedCounts { numbering: 1, documents: vec![(1, 2, 20)], ..ServedCounts::default() }
        );
        assert_eq!(
            (parts[1].redirects, parts[1].copies, parts[1].others, parts[1].other_bytes),
            (1, 1, 3, 50)
        );
        assert_eq!((parts.len(), second.take_served(1).len()), (2, 0));
        first.count(document(0), 10);
        assert_eq!(Book::new(&map(2, &[]), &second).take_served(9), []);
    }
}
