//! Names that two servers want while one takes the place of the other: the pid file's and the control socket's.
//!
//! As users of nginx know it: the server that is about to be replaced renames its files to `….oldbin`, so that the
//! names are the new one's; if nothing comes of that, it takes them back.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use baton_report::Trouble;

/// What is added to names that belong to a server which is being replaced.
const OLD: &str = ".oldbin";

/// The name of a file that can make room for a successor's.
#[derive(Debug)]
pub(crate) struct ReplaceableFile {
    path: PathBuf,
    aside: bool,
}

impl ReplaceableFile {
    /// The name that a file has now.
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

    /// Renames the file to make room. That it does not exist any more is no failure.
    ///
    /// # Errors
    /// If it cannot be renamed, and why that is likely so.
    pub(crate) fn move_aside(&mut self) -> Result<(), Trouble> {
        match fs::rename(&self.path, aside(&self.path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Trouble::of(format_args!("rename {}", self.path.display()), &error)
                    .about_file(&self.path, &error))
            }
            _ => {
                self.aside = true;
                Ok(())
            }
        }
    }

    /// Takes the name back, also from another file.
    pub(crate) fn move_back(&mut self) {
        if std::mem::take(&mut self.aside) {
            // Where it could be renamed, it can be renamed back; if it was removed since, nothing can be done.
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
    /// If it cannot be written, and why that is likely so.
    pub(crate) fn write(path: &Path) -> Result<Self, Trouble> {
        fs::write(path, format!("{}\n", std::process::id())).map_err(|error| {
            Trouble::of(format_args!("write the pid file {}", path.display()), &error)
                .about_file(path, &error)
        })?;
        Ok(Self(ReplaceableFile::new(path)))
    }

    /// Removes it.
    pub(crate) fn remove(&self) {
        // If it stays, it names a process that is no more: no worse than after a crash.
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
    fn a_name_that_somebody_removed_is_no_hindrance() {
        let dir = tempfile::tempdir().unwrap();
        let mut name = ReplaceableFile::new(&dir.path().join("gone"));
        name.move_aside().unwrap();
        name.move_back();
        assert_eq!(name.current(), dir.path().join("gone"));
    }
}
