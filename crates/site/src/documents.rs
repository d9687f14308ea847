//! Documents that migrate, in a worker: where they are, and pages with links to those that are away.
//!
//! A site that lends documents costs its requests a look into a table. Other sites never come here.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use baton_content::{Stored, Variant};
use baton_dcws::links::{CopyTerms, Page, PageAddress};
use baton_dcws::{Book, Map, Origin, Rules, ServedCounts, encode};
use baton_http::origin::ResponseHead;
use baton_http::{Status, is_media_type};

/// Where a site's documents are, as all plans and loops of a worker share it.
#[derive(Debug)]
pub struct Documents {
    home: Origin,
    book: RwLock<Arc<Book>>,
    variants: Mutex<Variants>,
}

/// The documents of a route's folder, some of which may be away.
#[derive(Debug)]
pub struct Lending {
    /// What is known of all documents.
    pub documents: Arc<Documents>,
    /// What a peer says that fetches a document which it is lent.
    pub token: String,
    /// Seconds for which a peer's copy is fresh.
    pub copy_s: u64,
}

/// The documents that a peer lends to this server.
#[derive(Debug)]
pub struct Copies {
    /// What is known of all documents.
    pub documents: Arc<Documents>,
    /// The peer's place in the map.
    pub peer: usize,
    /// The peer.
    pub home: Origin,
    /// Where its documents are here, without the slash in front.
    pub prefix: String,
    /// Which media types they may have.
    rules: Rules,
}

/// What a client gets in place of a home's response that is no document of a type that may move. Such a response would speak
/// under this server's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// The address at the home.
    Home,
    /// The page of this status.
    Status(Status),
}

impl Documents {
    /// All documents of the site are at home.
    pub fn new(home: Origin) -> Self {
        Self { book: RwLock::new(Arc::new(Book::empty(home.clone()))), home, variants: Mutex::default() }
    }

    /// Documents are here from now on. Returns the tags of copies that this server no longer may serve.
    pub fn replace(&self, map: &Map) -> Vec<String> {
        let mut book = self.book.write().unwrap_or_else(PoisonError::into_inner);
        let newer = Book::new(map, &book);
        let withdrawn = book.withdrawn(&newer);
        *book = Arc::new(newer);
        withdrawn
    }

    /// What has been counted since the last call, in parts of so many documents.
    pub fn take_served(&self, documents_max: usize) -> Vec<ServedCounts> {
        self.book().take_served(documents_max)
    }

    /// This server, as peers know it.
    pub fn home(&self) -> &Origin {
        &self.home
    }

    /// The documents as of the last map.
    pub fn book(&self) -> Arc<Book> {
        Arc::clone(&self.book.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The page in that state, if it was made before.
    pub fn variant(&self, key: &VariantKey) -> Option<Arc<Stored>> {
        self.variants().by_key.get(key).cloned()
    }

    fn variants(&self) -> MutexGuard<'_, Variants> {
        self.variants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lending {
    /// `token`: see [`Key::copy_token`](baton_dcws::Key::copy_token). Copies are looked at again after `copy_s` seconds.
    pub fn new(documents: Arc<Documents>, token: String, copy_s: u64) -> Self {
        Self { documents, token, copy_s }
    }
}

impl Copies {
    /// `peer`: the place of `home` in the map.
    pub fn new(documents: Arc<Documents>, peer: usize, home: Origin, rules: Rules) -> Self {
        let prefix = home.copies_path().trim_start_matches('/').to_owned();
        Self { documents, peer, home, prefix, rules }
    }

    /// What a client gets in place of this response; `None`: the response.
    pub fn instead_of(&self, response: &ResponseHead) -> Option<Instead> {
        let media_type = || std::str::from_utf8(response.field("Content-Type")?).ok();
        let is_parts = |kind: &str| is_media_type(kind, "multipart/byteranges");
        match response.status().code() {
            304 => None,
            200 if media_type().is_some_and(|kind| self.rules.allow_type(kind)) => None,
            206 if media_type().is_some_and(|kind| self.rules.allow_type(kind) || is_parts(kind)) => None,
            300..400 => Some(Instead::Home),
            400.. => Some(Instead::Status(response.status())),
            _ => Some(Instead::Status(Status::BAD_GATEWAY)),
        }
    }

    /// The server whose documents these are.
    pub fn home(&self) -> &Origin {
        &self.home
    }

    /// The name of the document at a decoded path.
    pub fn name<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        path.strip_prefix(self.prefix.as_bytes())?.strip_prefix(b"/")
    }
}

/// What tells one page from another: the file, the state of its links, and the address that it has at a peer for which it is.
pub type VariantKey = (Box<[u8]>, Option<(u64, u64)>, Option<Box<str>>);

/// Pages that were made.
#[derive(Debug, Default)]
struct Variants {
    by_key: HashMap<VariantKey, Arc<Stored>>,
    /// The oldest first.
    order: VecDeque<VariantKey>,
    bytes: u64,
}

impl Variants {
    fn insert(&mut self, key: VariantKey, page: Arc<Stored>) {
        self.bytes += page.len() + ENTRY_BYTES;
        if let Some(old) = self.by_key.insert(key.clone(), page) {
            // Another loop made it, too.
            self.bytes -= old.len() + ENTRY_BYTES;
        } else {
            self.order.push_back(key);
        }
        while self.bytes > VARIANT_BYTES_MAX {
            let Some(oldest) = self.order.pop_front() else { return };
            if let Some(page) = self.by_key.remove(&oldest) {
                self.bytes -= page.len() + ENTRY_BYTES;
            }
        }
    }
}

/// A page that is to be made.
#[derive(Debug)]
pub struct Rewriting {
    /// Where the page is kept as a variant.
    pub documents: Arc<Documents>,
    /// The map that its links follow.
    pub book: Arc<Book>,
    /// The page as it is in its folder.
    pub stored: Arc<Stored>,
    /// Its decoded path.
    pub path: Box<[u8]>,
    /// By what the variant is found.
    pub key: VariantKey,
    /// Fields that it has besides.
    pub lines: Vec<u8>,
}

impl Rewriting {
    /// Makes the page, and keeps it for later requests. Reads the file, if it is not in memory.
    pub fn run(self) -> Arc<Stored> {
        let Self { documents, book, stored, path, key, lines } = self;
        let (_, state, copy_at) = &key;
        let html = if stored.len() > PAGE_BYTES_MAX { None } else { stored.bytes() };
        let made = html.and_then(|html| {
            let page = Page::read(&html, &PageAddress { origin: documents.home(), path: &path });
            let copy = copy_at.as_ref().map(|copy| CopyTerms {
                home: format!("{}/{}", documents.home(), encode(&path)),
                copy: copy.to_string(),
            });
            page.rewritten(&html, |document| book.address(document), copy.as_ref())
        });
        let (state, changed) = state.unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        (state, copy_at).hash(&mut hasher);
        let mark = if copy_at.is_some() { hasher.finish() } else { state };
        let variant = Variant {
            // What has changed since the folder was looked at is as it is.
            mark: made.is_some().then_some(mark),
            changed_unix_seconds: if made.is_some() { changed } else { 0 },
            body: made,
            lines: &lines,
        };
        let page = Arc::new(stored.variant(variant));
        documents.variants().insert(key, Arc::clone(&page));
        page
    }
}

/// Bytes of the longest page that is rewritten: the process that looks at folders reads no longer ones.
const PAGE_BYTES_MAX: u64 = baton_dcws::PAGE_BYTES_MAX;

/// Bytes of all pages that are kept for a site.
const VARIANT_BYTES_MAX: u64 = 16 << 20;

/// Heads and administration of a page, about.
const ENTRY_BYTES: u64 = 1024;
