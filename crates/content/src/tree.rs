//! A folder that is served: where it is and what its owner wants.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use baton_http::{field_name_is_safe, field_value_is_safe};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::hidden_link::{HiddenLink, HiddenLinks};
use crate::roots::Roots;
use crate::source_code::is_named_like_a_script;
use crate::tree_config::{Listing, Symlinks, TreeConfig};

/// An open folder with its configuration.
#[derive(Debug)]
pub struct Tree {
    id: u32,
    root: Arc<OwnedFd>,
    config: TreeConfig,
    resolve: ResolveFlags,
    hidden_links: HiddenLinks,
}

impl Tree {
    /// Opens the root. The kernel resolves all paths relative to this directory, even if it is moved meanwhile.
    ///
    /// # Errors
    /// `InvalidInput` if a configured field could not be sent; else what keeps the root from being used, with the
    /// path and the likely cause.
    pub fn open(config: TreeConfig) -> io::Result<Self> {
        Self::open_among(&Roots::default(), config)
    }

    /// Like [`open`](Self::open), but shares the descriptor of the root with the other trees of the same folder.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_among(roots: &Roots, mut config: TreeConfig) -> io::Result<Self> {
        check_fields(&config)?;
        config.fallback = config.fallback.map(|path| path.trim_start_matches('/').to_owned());
        config.strip_prefix = config.strip_prefix.trim_matches('/').to_owned();
        let resolve = ResolveFlags::NO_MAGICLINKS
            | match config.symlinks {
                Symlinks::Beneath => ResolveFlags::BENEATH,
                Symlinks::Refused => ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
                Symlinks::Anywhere => ResolveFlags::empty(),
            };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(&config.root, flags, Mode::empty())
            .map_err(|errno| explain(&config.root, errno, root_cause(errno)))?;
        // Fails now on a kernel or sandbox without openat2, not with each request.
        rustix::fs::openat2(&root, ".", flags, Mode::empty(), resolve)
            .map_err(|errno| explain(&config.root, errno, confinement_cause(errno)))?;
        let root = roots.share(root).map_err(|errno| explain(&config.root, errno, root_cause(errno)))?;
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Ok(Self { id, root, config, resolve, hidden_links: HiddenLinks::default() })
    }

    /// Tries whether the kernel looks up paths without waiting for a disk: Linux 5.12. Without that, helpers look them up.
    ///
    /// # Errors
    /// Why not.
    pub fn resolve_cached(&self) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat2(&self.root, ".", flags, Mode::empty(), self.resolve | ResolveFlags::CACHED)?;
        Ok(())
    }

    /// Number of this tree, different from that of any other tree that this process opened.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// What its owner wants.
    pub fn config(&self) -> &TreeConfig {
        &self.config
    }

    /// Whether a directory without an index is listed; if not, [`crate::Query::view`] is never looked at.
    pub fn lists(&self) -> bool {
        self.config.listing == Listing::On
    }

    /// Whether something is configured for paths at which nothing is.
    pub(crate) fn answers_for_missing(&self) -> bool {
        self.config.fallback.is_some() || !self.config.candidates.is_empty()
    }

    /// Whether the file at this path is a script.
    pub(crate) fn is_script(&self, path: &[u8]) -> bool {
        self.config.scripts.iter().any(|ending| path.ends_with(ending.as_bytes()))
    }

    /// Whether the file at this path is source code that is not run here, and so must not be sent.
    pub fn withholds(&self, path: &[u8]) -> bool {
        is_named_like_a_script(path, &self.config.withheld) && !self.is_script(path)
    }

    /// A link on a requested path that is not followed; each is reported once.
    pub fn take_hidden_link(&self) -> Option<HiddenLink> {
        self.hidden_links.take_news()
    }

    pub(crate) fn hidden_links(&self) -> &HiddenLinks {
        &self.hidden_links
    }

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// How the kernel confines paths to the tree.
    pub(crate) fn resolve(&self) -> ResolveFlags {
        self.resolve
    }
}

fn check_fields(config: &TreeConfig) -> io::Result<()> {
    let rules = config.cache_control.iter().map(|rule| (CACHE_CONTROL, rule.value.as_str()));
    let fields = config.headers.all().map(|(name, value)| (name, value.fixed().unwrap_or_default()));
    for (name, value) in rules.chain(fields) {
        if !field_name_is_safe(name.as_bytes()) || !field_value_is_safe(value.as_bytes()) {
            let message = format!("{name:?}: {value:?} cannot be a header field");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
    }
    Ok(())
}

/// What [`TreeConfig::cache_control`] is about.
pub(crate) const CACHE_CONTROL: &str = "Cache-Control";

static NEXT_ID: AtomicU32 = AtomicU32::new(1);

fn explain(path: &Path, errno: Errno, cause: &str) -> io::Error {
    let error = io::Error::from(errno);
    let colon = if cause.is_empty() { "" } else { ": " };
    io::Error::new(error.kind(), format!("cannot serve {}: {error}{colon}{cause}", path.display()))
}

fn root_cause(errno: Errno) -> &'static str {
    match errno {
        Errno::NOENT => "there is no such folder; a relative path counts from where the server was started",
        Errno::NOTDIR => "a folder is needed, this is a file",
        Errno::ACCESS => {
            "the server's user may not enter one of the folders on the way (it needs the x permission)"
        }
        Errno::MFILE | Errno::NFILE => "no descriptors are left; raise the limit (ulimit -n, LimitNOFILE=)",
        _ => "",
    }
}

fn confinement_cause(errno: Errno) -> &'static str {
    match errno {
        Errno::NOSYS => {
            "openat2 is needed, which Linux has from 5.6 on, and which a container's filter may hide"
        }
        Errno::PERM => "a container's filter of system calls seems to forbid openat2",
        other => root_cause(other),
    }
}
