//! How a process begins: in a group of its own, with the rights, the folder and the environment that it is to have.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt as _, parent_id};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use baton_confine::{Kind, Limits, confine};
use baton_supervise::Lines;
use baton_sys::process::{self, Fork, Identity};
use baton_sys::signals;
use rustix::process::{Gid, Signal, Uid};

/// The signals that the manager waits for, and that it has blocked for this. Its parent may have blocked others.
pub(super) const MANAGERS_SIGNALS: [Signal; 5] =
    [Signal::TERM, Signal::INT, Signal::QUIT, Signal::HUP, Signal::CHILD];

/// What is run.
#[derive(Debug)]
pub(super) struct Program {
    /// The command and its arguments.
    pub(super) command: Vec<OsString>,
    /// All of its environment.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// Where it begins, if not here.
    pub(super) directory: Option<PathBuf>,
    /// The user as which it runs; `None`: the one who runs this.
    pub(super) identity: Option<Identity>,
    /// What it is to the server.
    pub(super) kind: Kind,
}

impl Program {
    /// Starts a process with a listening socket as its standard input. Returns its id, and what it prints.
    ///
    /// # Errors
    /// `EAGAIN`, `ENOMEM`, `EMFILE`. That the command cannot be executed shows only when the process ends: it says
    /// why, and exits with [`NOT_STARTED`].
    pub(super) fn start(&self, listener: Option<BorrowedFd<'_>>) -> io::Result<(i32, Lines)> {
        let (lines, theirs) = Lines::open()?;
        let manager = std::process::id();
        match process::fork()? {
            Fork::Parent(pid) => Ok((pid, lines)),
            Fork::Child => {
                let Err(error) = self.become_it(listener, theirs.as_fd(), manager);
                let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
                // The pipe is the only place to say so.
                let _ = std::fs::File::from(theirs)
                    .write_all(format!("cannot run `{}`: {error}\n", words.join(" ")).as_bytes());
                std::process::exit(NOT_STARTED)
            }
        }
    }

    /// Whether it runs as root.
    pub(super) fn is_of_root(&self) -> bool {
        let uid = self.identity.map_or(rustix::process::geteuid(), |identity| Uid::from_raw(identity.uid));
        uid.is_root()
    }

    fn become_it(
        &self,
        listener: Option<BorrowedFd<'_>>,
        output: BorrowedFd<'_>,
        manager: u32,
    ) -> io::Result<Never> {
        // A blocked signal stays blocked in what is executed.
        signals::unblock(&(1..REAL_TIME_SIGNALS).collect::<Vec<_>>())?;
        // What the process starts ends with it, and a Ctrl-C in the terminal goes to the manager only.
        rustix::process::setpgid(None, None)?;
        if let Some(identity) = self.identity {
            // So that /dev/stderr can be opened, as logs are.
            let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
            rustix::fs::fchown(output, Some(uid), Some(gid))?;
        }
        let limits =
            Limits { user: self.identity, is_root_on_request: self.is_of_root(), ..Limits::default() };
        confine(self.kind, &limits).map_err(|trouble| io::Error::other(trouble.to_string()))?;
        // After that, since the kernel forgets this wish when a process changes its user.
        process::die_with_parent()?;
        if parent_id() != manager {
            return Err(io::Error::other("the manager has ended"));
        }
        let [program, arguments @ ..] = self.command.as_slice() else {
            return Err(io::Error::other("there is no command"));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(match listener {
                Some(socket) => Stdio::from(socket.try_clone_to_owned()?),
                None => Stdio::null(),
            })
            .stdout(output.try_clone_to_owned()?)
            .stderr(output.try_clone_to_owned()?);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        Err(command.exec())
    }
}

/// The first of the signals that no program expects.
const REAL_TIME_SIGNALS: i32 = 32;

/// A process that has become another program does not return.
enum Never {}

/// The status of a process that did not become the command, as shells have it.
const NOT_STARTED: i32 = 127;
