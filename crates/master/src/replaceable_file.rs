//! Names that two servers want while one replaces the other: those of the pid file and the control socket.
//!
//! As in nginx, the old server renames its files to `….oldbin`, so that the new one can use the names. If the upgrade
//! fails, the old server renames its files back.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use baton_report::OperatorError;
use baton_sys::open_below::open_below;
use rustix::fs::{Mode, OFlags};

/// The suffix of the old server's names during an upgrade.
const OLD: &str = ".oldbin";

/// The name of a file that can make room for a successor's.
#[derive(Debug)]
pub(crate) struct ReplaceableFile {
    path: PathBuf,
    aside: bool,
}

impl ReplaceableFile {
    /// For the current name of the file.
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.into(), aside: false }
    }

    /// Where the file is.
    pub(crate) fn current(&self) -> Cow<'_, Path> {
        match self.aside {
            false => Cow::Borrowed(&self.path),
            true => Cow::Owned(aside(&self.path)),
        }
    }

    /// Renames the file to make room. A removed file is not an error.
    ///
    /// # Errors
    /// If the file cannot be renamed, with the likely cause.
    pub(crate) fn move_aside(&mut self) -> Result<(), OperatorError> {
        match fs::rename(&self.path, aside(&self.path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(OperatorError::of(format_args!("rename {}", self.path.display()), &error)
                    .about_file(&self.path, &error))
            }
            _ => {
                self.aside = true;
                Ok(())
            }
        }
    }

    /// Renames the file back, and replaces another one of that name.
    pub(crate) fn move_back(&mut self) {
        if std::mem::take(&mut self.aside) {
            // The first rename worked, so this fails only if the file has been removed, which has no remedy.
            let _ = fs::rename(aside(&self.path), &self.path);
        }
    }
}

fn aside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(OLD);
    name.into()
}

/// A file that says which process the server is.
#[derive(Debug)]
pub(crate) struct PidFile(pub(crate) ReplaceableFile);

impl PidFile {
    /// Writes it for this process.
    ///
    /// # Errors
    /// If the file cannot be written, with the likely cause.
    pub(crate) fn write(path: &Path) -> Result<Self, OperatorError> {
        let write = || {
            let flags = OFlags::WRONLY | OFlags::TRUNC | OFlags::CREATE;
            let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
            writeln!(open_below(path, flags, mode)?, "{}", std::process::id())
        };
        write().map_err(|error| {
            OperatorError::of(format_args!("write the pid file {}", path.display()), &error)
                .about_file(path, &error)
        })?;
        Ok(Self(ReplaceableFile::new(path)))
    }

    /// Removes it.
    pub(crate) fn remove(&self) {
        // A file that stays names a dead process, as after a crash.
        let _ = fs::remove_file(self.0.current());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_lent_and_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid");
        let own = format!("{}\n", std::process::id());
        let mut file = PidFile::write(&path).unwrap();
        file.0.move_aside().unwrap();
        assert!(!path.exists());
        fs::write(&path, "another's").unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("pid.oldbin")).unwrap(), own);
        file.0.move_back();
        assert_eq!(fs::read_to_string(&path).unwrap(), own);

        file.0.move_aside().unwrap();
        fs::write(&path, "another's").unwrap();
        file.remove();
        assert_eq!(fs::read_to_string(&path).unwrap(), "another's", "it is not ours to remove");
        assert!(!dir.path().join("pid.oldbin").exists());
    }

    #[test]
    fn a_removed_name_is_no_hindrance() {
        let dir = tempfile::tempdir().unwrap();
        let mut name = ReplaceableFile::new(&dir.path().join("gone"));
        name.move_aside().unwrap();
        name.move_back();
        assert_eq!(name.current(), dir.path().join("gone"));
    }
}
