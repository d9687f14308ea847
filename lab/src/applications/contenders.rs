//! The contenders: servers with the C program behind them, each with its own pool.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::comparison::Contender;
use crate::rig::{Application, Entry, Machine, Program, Running};

/// Executables and libraries of this project for comparisons of applications.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The command.
    pub baton: PathBuf,
    /// The drop-in for `libfcgi`.
    pub libfcgi: PathBuf,
}

/// A server, and the transport to its application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerSetup {
    /// nginx with kept connections to the application, which has the distribution's `libfcgi`.
    Nginx,
    /// Baton by the standard protocol, and the same application.
    BatonOriginal,
    /// Baton by this transport; the application has our drop-in.
    Baton(&'static str),
}

impl ServerSetup {
    /// All, the reference first.
    pub(crate) const ALL: [Self; 5] =
        [Self::Nginx, Self::BatonOriginal, Self::Baton("unix"), Self::Baton("shm"), Self::Baton("passfd")];

    /// As in the tables.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Nginx => "nginx".to_owned(),
            Self::BatonOriginal => "baton unix + original libfcgi".to_owned(),
            Self::Baton(transport) => format!("baton {transport}"),
        }
    }
}

/// The C program, ready to start in many pools.
#[derive(Debug)]
pub(crate) struct AdRotation<'a> {
    pub(crate) programs: &'a Programs,
    pub(crate) executable: &'a Path,
    /// Folder of the drop-in.
    pub(crate) library: &'a Path,
    pub(crate) processes: usize,
    /// The document root, and a file in it that the program names if it is asked to.
    pub(crate) root: &'a Path,
    pub(crate) named_file: &'a str,
}

impl AdRotation<'_> {
    /// Starts a pool and a server in front of it.
    ///
    /// # Errors
    /// If one of them cannot be started.
    pub(crate) fn start(&self, way: ServerSetup, machine: &Machine, folder: &Path) -> Result<Contender> {
        let name = way.name();
        let program = Program::AdRotation {
            executable: self.executable.to_owned(),
            library: matches!(way, ServerSetup::Baton(_)).then(|| self.library.to_owned()),
            named_file: Some(self.root.join(self.named_file)),
        };
        let place = folder.join(format!("{} application", name).replace(' ', "-"));
        let application = Application::start(&program, self.processes, machine, &place)
            .with_context(|| format!("the application of {name}"))?;
        let entry = self.entry(way, &application.socket).named(&name);
        let server = Running::start(&entry, machine, folder, self.root)?;
        Ok(Contender { server, application: Some(application) })
    }

    fn entry(&self, way: ServerSetup, socket: &Path) -> Entry {
        let transport = match way {
            ServerSetup::Nginx => return Entry::nginx_with_application(socket, true),
            ServerSetup::BatonOriginal => "unix",
            ServerSetup::Baton(transport) => transport,
        };
        let mounted = format!(
            "/app=unix:{},transport={transport},connections_max={},named_files=[\"{}\"]",
            socket.display(),
            self.processes,
            self.root.display()
        );
        // Files in memory, small and often requested ones, would be sent by a copy.
        let settings =
            ["cache.memory_hot_file_bytes_max=0".to_owned(), "cache.memory_file_bytes_max=0".to_owned()];
        Entry::baton(&self.programs.baton, "auto").workers(1).settings(&settings).application(&mounted)
    }
}
