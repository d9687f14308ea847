//! What came of coding a file, in each coding, and how many files are being coded.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

use baton_http::Coding;

/// What came of coding a file, by coding.
#[derive(Debug)]
pub(crate) struct CodedForms<F>(Mutex<[Form<F>; CODINGS.len()]>);

#[derive(Debug)]
pub(crate) enum Form<F> {
    Unknown,
    UnderWay,
    /// The coded form would not be shorter than the file.
    Useless,
    Made(Weak<F>),
}

/// How many files are being coded.
#[derive(Debug, Default)]
pub(crate) struct UnderWay(AtomicUsize);

impl<F> CodedForms<F> {
    /// Looks at what there is in this coding, and perhaps notes something else. No other thread does so meanwhile.
    ///
    /// # Panics
    /// The coding is [`Coding::Identity`].
    pub(crate) fn with<R>(&self, coding: Coding, look: impl FnOnce(&mut Form<F>) -> R) -> R {
        let place = CODINGS.iter().position(|known| *known == coding);
        look(&mut self.lock()[place.expect("a file as it is has no coded form")])
    }

    /// No update is ever left incomplete, so a panic of another thread does no harm.
    fn lock(&self) -> MutexGuard<'_, [Form<F>; CODINGS.len()]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> Default for CodedForms<F> {
    fn default() -> Self {
        Self(Mutex::new(CODINGS.map(|_| Form::Unknown)))
    }
}

impl UnderWay {
    /// Whether another file may be coded now.
    pub(crate) fn begin(&self) -> bool {
        let more = |count| (count < UNDER_WAY_MAX).then_some(count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    pub(crate) fn end(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

const CODINGS: [Coding; 3] = [Coding::Gzip, Coding::Brotli, Coding::Zstd];

/// Files that a cache codes at the same time: the threads that do it also wait for disks, and have other work.
const UNDER_WAY_MAX: usize = 4;
