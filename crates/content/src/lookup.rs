//! The long way of a question: what the cache does not know, or not any more.

use std::sync::Arc;

use baton_http::Stamp;

use crate::cache::{Cache, Found, Query, Recalled};
use crate::disk::{Blocking, Identity, Trouble, Verdict, verdict};
use crate::listing;
use crate::load::Loading;
use crate::name::{Answer, Name, Question};
use crate::presentation::Presentation;
use crate::resolve::{Place, Target, resolve};
use crate::stats::Counters;
use crate::stored::Stored;
use crate::tree::Tree;

/// One question that takes system calls to answer.
pub(crate) struct Lookup<'a> {
    pub(crate) cache: &'a Cache,
    pub(crate) tree: &'a Arc<Tree>,
    pub(crate) query: &'a Query<'a>,
    pub(crate) question: Question<'a>,
    pub(crate) now: &'a Stamp,
    pub(crate) blocking: Blocking,
}

impl Lookup<'_> {
    pub(crate) fn run(&self, recalled: Option<&Recalled>) -> Result<Found, Trouble> {
        match recalled {
            Some(Recalled::Gone(name)) => {
                if let Answer::File { target, identity, .. } = &name.answer {
                    let found = self.file(Some(name), target, identity)?;
                    if !matches!(found, Found::Missing) {
                        return Ok(found);
                    }
                }
                self.translate(Some(name))
            }
            Some(Recalled::Old(name)) => {
                Counters::count(&self.cache.counters.revalidations);
                self.translate(Some(name))
            }
            Some(Recalled::Known(_)) | None => self.translate(None),
        }
    }

    /// Resolves the path. What was known before is confirmed if it is still true, else replaced.
    fn translate(&self, known: Option<&Arc<Name>>) -> Result<Found, Trouble> {
        let place = resolve(self.tree, self.query.path, self.question.accepted, self.blocking)?;
        let agreed = known.filter(|name| name.answer.agrees_with(&place));
        if let Some(name) = agreed {
            name.confirm(self.now);
        } else if known.is_some() {
            Counters::count(&self.cache.counters.changes);
        }
        let (answer, found) = match place {
            Place::File(target, identity) => return self.file(agreed, &target, &identity),
            Place::Directory(_) if self.blocking == Blocking::Never => return Err(Trouble::NeedsDisk),
            Place::Directory(path) => return listing::list(self.tree, &path, self.query).map(Found::Listing),
            Place::Refused(refusal) => return Ok(Found::Refused(refusal)),
            Place::AddSlash => (Answer::AddSlash, Found::AddSlash),
            Place::Missing => (Answer::Missing, Found::Missing),
            Place::Forbidden => (Answer::Forbidden, Found::Forbidden),
        };
        if agreed.is_none() {
            self.remember(answer, self.now.unix_seconds);
        }
        Ok(found)
    }

    /// The file at `target`, last seen in the state `identity`; `known` is the name under which it is known already.
    fn file(
        &self,
        known: Option<&Arc<Name>>,
        target: &Target,
        identity: &Identity,
    ) -> Result<Found, Trouble> {
        let cached = known.and_then(|name| name.stored());
        if let Some(stored) = &cached
            && stored.is_current(identity, self.now)
            && stored.in_memory() == self.cache.belongs_in_memory(identity.size)
        {
            self.cache.use_file(stored);
            return Ok(Found::File(Arc::clone(stored)));
        }
        let stored = match self.obtain(target, identity) {
            Ok(stored) => stored,
            Err(Trouble::Errno(errno)) => match verdict(errno) {
                // It was there a moment ago: whatever comes next, nothing of it is worth remembering.
                Verdict::Missing => return Ok(Found::Missing),
                Verdict::Forbidden => {
                    self.remember(Answer::Forbidden, self.now.unix_seconds);
                    return Ok(Found::Forbidden);
                }
                Verdict::Failed => return Err(Trouble::Errno(errno)),
            },
            Err(Trouble::NeedsDisk) => return Err(Trouble::NeedsDisk),
        };
        if let Some(outdated) = &cached {
            Counters::count(&self.cache.counters.changes);
            self.cache.remove_file(outdated);
        }
        let keeps_files = self.cache.settings().files;
        if known.is_none() || keeps_files {
            let checked = known.map_or(self.now.unix_seconds, |name| name.checked());
            let answer = Answer::File {
                target: target.clone(),
                identity: stored.identity,
                stored: Arc::downgrade(&stored),
            };
            self.remember(answer, checked);
        }
        Ok(Found::File(stored))
    }

    /// The file, from the cache or else from the disk.
    fn obtain(&self, target: &Target, identity: &Identity) -> Result<Arc<Stored>, Trouble> {
        let presentation = Presentation::of(self.tree, target);
        let keeps_files = self.cache.settings().files;
        if keeps_files && let Some(stored) = self.cache.file(identity, &presentation, self.now) {
            self.cache.use_file(&stored);
            return Ok(stored);
        }
        let stored = Loading {
            tree: self.tree,
            path: &target.path,
            presentation: &presentation,
            keep_heads: self.cache.settings().heads,
            in_memory: &|size| self.cache.belongs_in_memory(size),
            hash: &|identity| self.cache.hash_of_file(identity, &presentation),
            counters: &self.cache.counters,
            now: self.now,
            blocking: self.blocking,
        }
        .load()?;
        Counters::count(&self.cache.counters.file_misses);
        Ok(if keeps_files { self.cache.insert_file(stored, self.now) } else { Arc::new(stored) })
    }

    fn remember(&self, answer: Answer, checked: u64) {
        if !self.cache.settings().names || self.question.path.len() > NAME_BYTES_MAX {
            return;
        }
        let name = Arc::new(Name::new(&self.question, answer, checked));
        self.cache.names.insert(name, |present| present.answers(&self.question), |_| false);
    }
}

/// Longer names are not remembered: ten thousand of them, made up by somebody, must not cost more than this.
const NAME_BYTES_MAX: usize = 1024;
