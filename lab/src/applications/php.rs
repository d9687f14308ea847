//! Servers with php-fpm behind them, each with a pool of its own.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::comparison::Contender;
use crate::rig::{Application, Entry, Extension, Machine, Program, Running};

/// php-fpm behind a server, and the libraries in it.
#[derive(Clone, Debug)]
pub(super) enum PhpSetup {
    /// A connection for each request, nginx's default.
    Nginx,
    /// nginx with kept connections to php-fpm.
    NginxKept,
    /// The standard protocol.
    Baton,
    /// With the library that answers on the client's socket.
    Preload(PathBuf),
    /// With the extension that names files instead of reading them.
    Extension(PathBuf),
    /// With that extension, and the library to read requests ahead.
    Both { library: PathBuf, extension: PathBuf },
}

impl PhpSetup {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Nginx => "nginx + php-fpm",
            Self::NginxKept => "nginx kept + php-fpm",
            Self::Baton => "baton unix + php-fpm",
            Self::Preload(_) => "baton passfd + preload",
            Self::Extension(_) => "baton unix + extension",
            Self::Both { .. } => "baton unix + preload + extension",
        }
    }

    /// Starts a pool of so many workers and a server in front of it. `root` holds scripts and files.
    pub(super) fn start(
        &self,
        baton: &Path,
        processes: usize,
        root: &Path,
        machine: &Machine,
        folder: &Path,
    ) -> Result<Contender> {
        let (preload, extension) = match self {
            Self::Nginx | Self::NginxKept | Self::Baton => (None, None),
            Self::Preload(library) => (Some(library), None),
            Self::Extension(extension) => (None, Some(extension)),
            Self::Both { library, extension } => (Some(library), Some(extension)),
        };
        let extension =
            extension.map(|library| Extension { library: library.clone(), root: root.to_owned() });
        let program = Program::PhpFpm { preload: preload.cloned(), extension };
        let place = folder.join(format!("{} pool", self.name()).replace(' ', "-"));
        let application = Application::start(&program, processes, machine, &place)
            .with_context(|| format!("the application of {}", self.name()))?;
        let socket = &application.socket;
        let by = |transport: &str, more: &str| {
            let mounted = format!(
                "/=unix:{},transport={transport},connections_max={processes},scripts=[\".php\"]{more}",
                socket.display()
            );
            Entry::baton(baton, "auto").workers(1).application(&mounted)
        };
        let entry = match self {
            Self::Nginx => Entry::nginx_with_application(socket, false),
            Self::NginxKept => Entry::nginx_with_application(socket, true),
            Self::Baton => by("unix", ""),
            Self::Preload(_) => by("passfd", ""),
            Self::Extension(_) | Self::Both { .. } => {
                by("unix", &format!(",named_files=[\"{}\"]", root.display()))
            }
        };
        let server = Running::start(&entry.named(self.name()), machine, folder, root)?;
        Ok(Contender { server, application: Some(application) })
    }
}
