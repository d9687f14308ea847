//! The architectures by name: the table that the enum and the files of [`arch`](crate::arch) are made of.

use std::fmt;
use std::str::FromStr;

/// Passes the table of all architectures to the named macro, after the tokens that follow its name. A row: variant,
/// module, word, and which processes and threads run the steps.
///
/// The table generates [`ArchitectureName`], whose `ALL` the tests run under.
macro_rules! for_each_architecture {
    ($first:ident $(:: $next:ident)* ! $($before:tt)*) => {
        $first $(:: $next)* ! {
            $($before)*
            Auto auto "auto" "n-copy across CPUs, amped within each, tuning itself (default)";
            Sped sped "sped" "one event loop runs everything; a blocking job blocks it";
            Amped amped "amped" "one event loop; blocking jobs go to helpers and come back as events";
            Symped symped "symped" "several sped processes on one listening socket, nothing else shared";
            SharedSymped shared_symped "shared-symped"
                "several event loops that share one table of open files and heads";
            NCopy n_copy "n-copy" "one copy per CPU, pinned, each with its own listener, nothing shared";
            Pipeline pipeline "pipeline" "accept, poll, read and write stages with queues between them";
            Threads threads "threads" "one user-level thread per connection over few kernel threads";
            ThreadsCache threads_cache "threads-cache"
                "threads, with an application's file cache and write instead of sendfile";
            Mt mt "mt" "one kernel thread per connection, from a pool";
            Mp mp "mp" "one process per connection, from a pool";
        }
    };
}

macro_rules! architecture_names {
    ($($variant:ident $module:ident $word:literal $summary:literal;)+) => {
        /// The architectures by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ArchitectureName {
            $(#[doc = $summary] $variant,)+
        }

        impl ArchitectureName {
            /// All of them, the default first.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word for it in configurations and on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// Which processes and threads run the steps, in a line.
            pub fn summary(self) -> &'static str {
                match self { $(Self::$variant => $summary,)+ }
            }
        }
    };
}

for_each_architecture!(architecture_names!);
pub(crate) use for_each_architecture;

impl Default for ArchitectureName {
    fn default() -> Self {
        Self::ALL[0]
    }
}

impl fmt::Display for ArchitectureName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ArchitectureName {
    type Err = UnknownArchitecture;

    fn from_str(word: &str) -> Result<Self, UnknownArchitecture> {
        Self::ALL.into_iter().find(|name| name.name() == word).ok_or(UnknownArchitecture)
    }
}

/// A word that names no architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownArchitecture;

impl fmt::Display for UnknownArchitecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an architecture; there are ")?;
        for (index, name) in ArchitectureName::ALL.iter().enumerate() {
            write!(f, "{}{name}", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownArchitecture {}
