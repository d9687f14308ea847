//! The user as which the workers run.
//!
//! A master that was started as root stays root: on a reload it binds ports and opens logs again. Its workers parse the
//! clients' input, so they run as root only if the configuration says `user = "root"`. By default they run as the first
//! user of [`CUSTOMARY`] that the system has.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, chown};
use std::path::Path;

use baton_report::Trouble;
use baton_sys::process::{Identity, drop_privileges, identity};
use rustix::thread::CapabilitySet;

/// The users tried in order if the configuration names none: Debian's web user, then `nobody`.
const CUSTOMARY: [&str; 2] = ["www-data", "nobody"];

/// The user as which the workers run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WorkerUser {
    /// The user of the master, with a warning for the operator if there is a reason for one.
    Same(Option<String>),
    /// Another user.
    Other {
        /// The name, for messages.
        name: String,
        /// User and group.
        identity: Identity,
    },
}

impl WorkerUser {
    /// Decides from the configured names.
    ///
    /// # Errors
    /// If a name is unknown, or the configured change is not possible.
    pub(super) fn choose(user: Option<&str>, group: Option<&str>) -> Result<Self, Trouble> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Same(user.filter(|user| !is_current(user)).map(|user| {
                format!("the workers run as the user who started the server, not as {user:?}: only root can change that")
            })));
        }
        let lookup = |user: &str| identity(user, group).map_err(|error| Trouble::new(error.to_string()));
        let chosen = match user {
            Some(user) => Some((user, lookup(user)?)),
            None => CUSTOMARY
                .iter()
                .find(|user| identity(user, None).is_ok())
                .map(|user| Ok((*user, lookup(user)?)))
                .transpose()?,
        };
        match chosen {
            Some((_, identity)) if identity.uid == 0 => Ok(Self::Same(None)),
            Some((name, identity)) if may_change() => Ok(Self::Other { name: name.to_owned(), identity }),
            Some((name, _)) if user.is_some() => {
                Err(Trouble::new(format!("the workers cannot run as {name:?}"))
                    .cause("this root may not change users: CAP_SETUID and CAP_SETGID were taken from it")
                    .remedy("leave `user` out, or give the container these capabilities"))
            }
            // Root without the right to change users: a restricted container.
            Some(_) => Ok(Self::Same(Some(
                "the workers run as root, which was denied the right to change users".into(),
            ))),
            None => Err(Trouble::new("the workers would run as root")
                .cause(format!("the system has none of the users {CUSTOMARY:?}"))
                .remedy("name a user: `user = \"…\"` in [server], or `--user`; \"root\" if it must be")),
        }
    }

    /// The user's name, if it is not the master's.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Same(_) => None,
            Self::Other { name, .. } => Some(name),
        }
    }

    /// The remedy to print if the workers may not read a file.
    pub(super) fn remedy_if_denied(&self) -> Option<String> {
        match self {
            Self::Same(_) => None,
            Self::Other { name, .. } => Some(format!(
                "the workers run as {name}, since the server was started as root: let that user read the files, or \
                 choose another user (`user = \"...\"` in [server], or `--user`)"
            )),
        }
    }

    /// Creates a folder that only this user and root may enter, and what leads to it.
    ///
    /// # Errors
    /// As of the calls that this takes.
    pub(super) fn create_folder(&self, folder: &Path) -> io::Result<()> {
        if let Some(parent) = folder.parent() {
            fs::create_dir_all(parent)?;
        }
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        match self {
            Self::Other { identity, .. } if fs::metadata(folder)?.uid() != identity.uid => {
                chown(folder, Some(identity.uid), Some(identity.gid))
            }
            _ => Ok(()),
        }
    }

    /// Changes to that user for good; only workers call it.
    ///
    /// # Errors
    /// `EPERM`.
    pub(super) fn assume(&self) -> io::Result<()> {
        match self {
            Self::Same(_) => Ok(()),
            Self::Other { identity, .. } => drop_privileges(*identity),
        }
    }
}

fn is_current(user: &str) -> bool {
    identity(user, None).is_ok_and(|identity| identity.uid == rustix::process::geteuid().as_raw())
}

fn may_change() -> bool {
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_users_are_named() {
        if rustix::process::geteuid().is_root() {
            let trouble = WorkerUser::choose(Some("no-such-user"), None).unwrap_err();
            assert!(trouble.to_string().contains("no user named \"no-such-user\""), "{trouble}");
        } else {
            assert!(matches!(WorkerUser::choose(Some("no-such-user"), None), Ok(WorkerUser::Same(Some(_)))));
        }
    }

    #[test]
    fn root_is_given_up_unless_asked_for() {
        let unasked = WorkerUser::choose(None, None);
        let asked = WorkerUser::choose(Some("root"), None);
        if rustix::process::geteuid().is_root() && may_change() {
            assert!(!matches!(unasked, Ok(WorkerUser::Same(_))), "{unasked:?}");
            assert_eq!(asked, Ok(WorkerUser::Same(None)));
        } else {
            assert!(matches!(unasked, Ok(WorkerUser::Same(_))), "{unasked:?}");
        }
    }
}
