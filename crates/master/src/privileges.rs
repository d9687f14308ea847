//! The user as which the workers run.
//!
//! A master that was started as root stays root: on a reload it binds ports and opens logs again. Its workers parse the
//! clients' input, so they run as root only if the configuration says `user = "root"`. By default they run as [`OWN`], or,
//! where the system has no such user, as [`SHARED`]: which has no files, so a server whose workers would have some refuses.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, fchown};
use std::path::Path;

use baton_config::{Config, word_of};
use baton_confine::Limits;
use baton_report::OperatorError;
use baton_sys::open_below::open_folder_below;
use baton_sys::process::{Identity, identity};
use rustix::thread::CapabilitySet;

/// The user of the workers, if the configuration names none. Packages create it.
const OWN: &str = "baton";

/// The user of the workers on a system without it. Other services may have it, too. Not `www-data`: that is the user of
/// Debian's php-fpm, which must not have the keys of certificates.
const SHARED: &str = "nobody";

/// The user of applications. Packages create it.
const APPLICATION_USER: &str = "baton-app";

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
    /// Decides from the configured names. `has_files`: files will belong to that user that no other may read.
    ///
    /// # Errors
    /// If a name is unknown, or the configured change is not possible; if the user would have to be one of its own, and the
    /// system has none.
    pub(super) fn choose(
        user: Option<&str>,
        group: Option<&str>,
        has_files: bool,
    ) -> Result<Self, OperatorError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Same(user.filter(|user| !is_current(user)).map(|user| {
                format!("the workers run as the user who started the server, not as {user:?}: only root can change that")
            })));
        }
        let lookup =
            |user: &str| identity(user, group).map_err(|error| OperatorError::new(error.to_string()));
        let chosen = match user {
            Some(user) => Some((user, lookup(user)?)),
            None => [OWN, SHARED]
                .into_iter()
                .find(|user| identity(user, None).is_ok())
                .map(|user| Ok((user, lookup(user)?)))
                .transpose()?,
        };
        if user.is_none() && has_files && may_change() && chosen.is_none_or(|(name, _)| name != OWN) {
            return Err(OperatorError::new("the keys of certificates would belong to a user whom other services have, too")
                .cause(format!("the system has no user {OWN:?}, and `user` in [server] names no other"))
                .remedy(format!(
                    "create it (`useradd --system --user-group --no-create-home --shell /usr/sbin/nologin {OWN}`), or \
                     name a user that only this server has: `user = \"...\"` in [server], or `--user`"
                )));
        }
        match chosen {
            Some((_, identity)) if identity.uid == 0 => Ok(Self::Same(None)),
            Some((name, identity)) if may_change() => Ok(Self::Other { name: name.to_owned(), identity }),
            Some((name, _)) if user.is_some() => {
                Err(OperatorError::new(format!("the workers cannot run as {name:?}"))
                    .cause("this root may not change users: CAP_SETUID and CAP_SETGID were taken from it")
                    .remedy("leave `user` out, or give the container these capabilities"))
            }
            // Root without the right to change users: a restricted container.
            Some(_) => Ok(Self::Same(Some(
                "the workers run as root, which was denied the right to change users".into(),
            ))),
            None => Err(OperatorError::new("the workers would run as root")
                .cause(format!("the system has neither a user {OWN:?} nor {SHARED:?}"))
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

    /// The user of applications that name none: one of their own, where the system and the master's rights have one.
    pub(super) fn of_applications(&self) -> Option<String> {
        let has_own = may_change() && identity(APPLICATION_USER, None).is_ok();
        has_own.then_some(APPLICATION_USER).or(self.name()).map(str::to_owned)
    }

    /// Whether an application of this user has the user of a process of the server. Root needs no help of any.
    pub(super) fn is_shared_with(&self, application: Option<&str>) -> bool {
        let own = rustix::process::geteuid().as_raw();
        let uid = match application {
            Some(name) if may_change() => identity(name, None).map_or(own, |identity| identity.uid),
            _ => own,
        };
        let of_workers = self.identity().map_or(own, |identity| identity.uid);
        uid != 0 && (uid == own || uid == of_workers)
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
        if let Self::Other { identity, .. } = self {
            let folder = open_folder_below(folder)?;
            if rustix::fs::fstat(&folder)?.st_uid != identity.uid {
                fchown(&folder, Some(identity.uid), Some(identity.gid))?;
            }
        }
        Ok(())
    }

    /// User and group, if they are not the master's.
    pub(super) fn identity(&self) -> Option<Identity> {
        match self {
            Self::Same(_) => None,
            Self::Other { identity, .. } => Some(*identity),
        }
    }
}

/// The limits that the configuration sets for all processes alike.
pub(super) fn limits(config: &Config) -> Limits {
    let server = &config.server;
    Limits { calls: server.system_calls, is_debuggable: server.debuggable, ..Limits::default() }
}

/// The limits for all processes alike, for the command line of a process of the server's own.
pub(super) fn options(limits: &Limits) -> impl Iterator<Item = &'static str> + use<> {
    ["--system-calls", word_of(limits.calls)]
        .into_iter()
        .chain(limits.is_debuggable.then_some("--debuggable"))
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
            let trouble = WorkerUser::choose(Some("no-such-user"), None, false).unwrap_err();
            assert!(trouble.to_string().contains("no user named \"no-such-user\""), "{trouble}");
        } else {
            assert!(matches!(
                WorkerUser::choose(Some("no-such-user"), None, false),
                Ok(WorkerUser::Same(Some(_)))
            ));
        }
    }

    #[test]
    fn root_is_given_up_unless_asked_for() {
        let unasked = WorkerUser::choose(None, None, false);
        let asked = WorkerUser::choose(Some("root"), None, false);
        if rustix::process::geteuid().is_root() && may_change() {
            assert!(!matches!(unasked, Ok(WorkerUser::Same(_))), "{unasked:?}");
            assert_eq!(asked, Ok(WorkerUser::Same(None)));
        } else {
            assert!(matches!(unasked, Ok(WorkerUser::Same(_))), "{unasked:?}");
        }
    }

    #[test]
    fn keys_belong_to_no_shared_user() {
        let chosen = WorkerUser::choose(None, None, true);
        if !rustix::process::geteuid().is_root() || !may_change() {
            assert!(matches!(chosen, Ok(WorkerUser::Same(_))), "{chosen:?}");
        } else if identity(OWN, None).is_ok() {
            assert_eq!(chosen.unwrap().name(), Some(OWN));
        } else {
            let trouble = chosen.unwrap_err().to_string();
            assert!(trouble.contains("useradd") && trouble.contains("no user \"baton\""), "{trouble}");
        }
        assert!(WorkerUser::choose(Some("root"), None, true).is_ok());
    }
}
