//! A lookup: at once from the cache, or by system calls for names that are not cached or due for revalidation.

use std::sync::Arc;

use baton_http::Stamp;
use baton_sys::descriptors;
use rustix::io::Errno;

use crate::cache::{Cache, NameLookup};
use crate::disk::{Blocking, DiskError, Identity, NeedsDisk, Verdict, verdict};
use crate::listing;
use crate::load::Loading;
use crate::name::{CachedResult, Name, Question};
use crate::presentation::Presentation;
use crate::query::{Found, Query};
use crate::resolve::{Resolution, Target, resolve};
use crate::stats::Counters;
use crate::stored::Stored;
use crate::tree::Tree;

impl Cache {
    /// Finds what a path of a tree leads to.
    ///
    /// A hit costs a hash of the path, a read lock and a few atomic operations; no allocation, and no system call
    /// unless the name is due for revalidation. No lock is held across a system call.
    ///
    /// # Errors
    /// [`NeedsDisk`] only with [`Blocking::Never`]: repeat the call with [`Blocking::Allowed`] on a thread that may
    /// wait, and use its answer. It also fills the cache.
    pub fn find(
        &self,
        tree: &Arc<Tree>,
        query: &Query<'_>,
        now: &Stamp,
        blocking: Blocking,
    ) -> Result<Found, NeedsDisk> {
        let question = self.question(tree, query);
        let recalled = self.recall(&question, now);
        if let Some(NameLookup::Known(found)) = recalled {
            return Ok(found);
        }
        let lookup = Lookup { cache: self, tree, query, question, now, blocking };
        let mut result = lookup.run(recalled.as_ref());
        if let Err(DiskError::Errno(errno)) = result
            && descriptors::ran_out(errno)
            && descriptors::release() > 0
        {
            // Caches have closed descriptors: this request is worth more than future hits.
            result = lookup.run(recalled.as_ref());
        }
        match result {
            Ok(found) => Ok(found),
            Err(DiskError::NeedsDisk) => {
                Counters::count(&self.counters.needs_disk);
                Err(NeedsDisk)
            }
            Err(DiskError::Errno(errno)) => Ok(Found::Failed(errno)),
        }
    }

    /// Whether [`find`](Self::find) has the answer with its bytes in memory, as far as the cache itself knows. It asks no file
    /// system: to ask whether pages are in memory makes the kernel read them.
    pub fn has_at_hand(&self, tree: &Tree, query: &Query<'_>, now: &Stamp) -> bool {
        let question = self.question(tree, query);
        let is_at_hand = |name: &Arc<Name>| match &name.answer {
            CachedResult::File { .. } => name.stored().is_some_and(|stored| stored.is_at_hand(now)),
            _ => true,
        };
        let answers = |name: &Name| name.answers(&question);
        self.names.find(question.hash, answers, is_at_hand).unwrap_or(false)
    }
}

/// One question that takes system calls to answer.
struct Lookup<'a> {
    cache: &'a Cache,
    tree: &'a Arc<Tree>,
    query: &'a Query<'a>,
    question: Question<'a>,
    now: &'a Stamp,
    blocking: Blocking,
}

impl Lookup<'_> {
    fn run(&self, recalled: Option<&NameLookup>) -> Result<Found, DiskError> {
        match recalled {
            Some(NameLookup::Gone(name)) => {
                if let CachedResult::File { target, identity, .. } = &name.answer {
                    let found = self.file(Some(name), target, identity, name.checked())?;
                    if !matches!(found, Found::Missing) {
                        return Ok(found);
                    }
                }
                self.translate(Some(name))
            }
            Some(NameLookup::Old(name)) => {
                Counters::count(&self.cache.counters.revalidations);
                match (self.translate(Some(name)), name.stored()) {
                    // Out of descriptors: serve the old state rather than fail the request.
                    (Err(DiskError::Errno(Errno::MFILE | Errno::NFILE)), Some(stored)) => {
                        Ok(Found::File(stored))
                    }
                    (found, _) => found,
                }
            }
            Some(NameLookup::Known(_)) | None => self.translate(None),
        }
    }

    /// Resolves the path, and confirms or replaces the known name.
    fn translate(&self, known: Option<&Arc<Name>>) -> Result<Found, DiskError> {
        let place = resolve(self.tree, self.query.path, self.question.accepted, self.blocking)?;
        let agreed = known.filter(|name| name.answer.agrees_with(&place));
        if known.is_some() && agreed.is_none() {
            Counters::count(&self.cache.counters.changes);
        }
        let checked = self.now.unix_seconds;
        let (answer, found) = match place {
            Resolution::File(target, identity) => return self.file(agreed, &target, &identity, checked),
            Resolution::Directory(_) if self.blocking != Blocking::Allowed => {
                return Err(DiskError::NeedsDisk);
            }
            Resolution::Directory(path) => {
                return listing::list(self.tree, &path, self.query.view).map(Found::Listing);
            }
            Resolution::Refused(refusal) => return Ok(Found::Refused(refusal)),
            Resolution::Script(path) => {
                let path: Arc<[u8]> = path.into();
                (CachedResult::Script(Arc::clone(&path)), Found::Script(path))
            }
            Resolution::Fallback(path) => {
                let path: Arc<[u8]> = path.into();
                (CachedResult::Fallback(Arc::clone(&path)), Found::Fallback(path))
            }
            Resolution::AddSlash => (CachedResult::AddSlash, Found::AddSlash),
            Resolution::Missing => (CachedResult::Missing, Found::Missing),
            Resolution::Forbidden => (CachedResult::Forbidden, Found::Forbidden),
        };
        match agreed {
            Some(name) => name.confirm(checked),
            None => self.remember(answer, checked),
        }
        Ok(found)
    }

    /// The file at `target`, seen in the state `identity` in the second `checked`; `known` says the same, but perhaps
    /// of another state.
    ///
    /// Nothing is confirmed before the file is at hand: if that takes a disk, the helper must find the same doubt.
    fn file(
        &self,
        known: Option<&Arc<Name>>,
        target: &Target,
        identity: &Identity,
        checked: u64,
    ) -> Result<Found, DiskError> {
        let before = known.and_then(|name| name.stored());
        let in_memory = self.cache.belongs_in_memory(identity.size, before.as_deref(), self.now);
        if let (Some(name), Some(stored)) = (known, &before)
            && stored.is_current(identity, self.now)
            && stored.in_memory() == in_memory
        {
            name.confirm(checked);
            self.cache.use_file(stored);
            return Ok(Found::File(Arc::clone(stored)));
        }
        let stored = match self.obtain(target, identity, before.is_some().then_some(in_memory)) {
            Ok(stored) => stored,
            Err(DiskError::Errno(errno)) => match verdict(errno) {
                // It was there a moment ago: cache nothing.
                Verdict::Missing => return Ok(Found::Missing),
                Verdict::Forbidden => {
                    self.remember(CachedResult::Forbidden, checked);
                    return Ok(Found::Forbidden);
                }
                Verdict::Failed => return Err(DiskError::Errno(errno)),
            },
            Err(DiskError::NeedsDisk) => return Err(DiskError::NeedsDisk),
        };
        if let Some(outdated) = &before {
            Counters::count(&self.cache.counters.changes);
            self.cache.remove_file(outdated);
        }
        match known {
            // Without files in the cache, a name says nothing about the state of its file: it need not be replaced.
            Some(name) if !self.cache.settings().files => name.confirm(checked),
            _ => {
                let stored_weakly = Arc::downgrade(&stored);
                let answer = CachedResult::File {
                    target: target.clone(),
                    identity: stored.identity,
                    stored: stored_weakly,
                };
                self.remember(answer, checked);
            }
        }
        Ok(Found::File(stored))
    }

    /// The file, from the cache or else from the disk.
    /// `in_memory`: where it belongs, if that is known already.
    fn obtain(
        &self,
        target: &Target,
        identity: &Identity,
        in_memory: Option<bool>,
    ) -> Result<Arc<Stored>, DiskError> {
        let presentation = Presentation::of(self.tree, target);
        let keeps_files = self.cache.settings().files;
        let cached = keeps_files.then(|| self.cache.file(identity, &presentation, self.now)).flatten();
        let in_memory = in_memory
            .unwrap_or_else(|| self.cache.belongs_in_memory(identity.size, cached.as_deref(), self.now));
        if let Some(stored) = cached
            && stored.in_memory() == in_memory
        {
            self.cache.use_file(&stored);
            return Ok(stored);
        }
        let stored = Loading {
            tree: self.tree,
            path: &target.path,
            presentation: &presentation,
            keep_heads: self.cache.settings().heads,
            both_ways_max: if keeps_files { self.cache.settings().files_max as u64 } else { 0 },
            in_memory: &|size| if size == identity.size { in_memory } else { self.cache.is_small(size) },
            hash: &|identity| self.cache.hash_of_file(identity, &presentation),
            counters: &self.cache.counters,
            now: self.now,
            blocking: self.blocking,
        }
        .load()?;
        Counters::count(&self.cache.counters.file_misses);
        Ok(if keeps_files { self.cache.insert_file(stored, self.now) } else { Arc::new(stored) })
    }

    fn remember(&self, answer: CachedResult, checked: u64) {
        if !self.cache.settings().names || self.question.path.len() > NAME_BYTES_MAX {
            return;
        }
        let name = Arc::new(Name::new(&self.question, answer, checked));
        self.cache.names.insert(name, |present| present.answers(&self.question), |_| false);
    }
}

/// Longer names are not cached: this bounds the cost of ten thousand made-up ones.
const NAME_BYTES_MAX: usize = 1024;
