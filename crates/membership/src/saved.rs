//! The state file: the last view, for a start while no source answers.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use baton_sys::open_below::open_below;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::record::{Directive, Registration};
use crate::settings::MembersSettings;
use crate::view::{Member, View};

/// What the file has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedView {
    pub(crate) version: u32,
    /// When a source last confirmed it, in seconds since 1970.
    pub(crate) seen_at_s: u64,
    /// Of which etcd it is.
    pub(crate) prefix: String,
    pub(crate) cluster_id: u64,
    pub(crate) nodes: BTreeMap<String, Registration>,
    pub(crate) orders: BTreeMap<String, Directive>,
    pub(crate) dns: Vec<Member>,
}

impl SavedView {
    /// Reads the file; `None` if there is none.
    ///
    /// # Errors
    /// What open(2) and read(2) say; `InvalidData` if it is not such a file.
    pub(crate) fn read(path: &Path) -> io::Result<Option<Self>> {
        // What another process could plant is not followed.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = match open_below(path, flags, Mode::empty()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
        let saved: Self = serde_json::from_slice(&bytes)?;
        if saved.version == VERSION {
            Ok(Some(saved))
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidData, format!("it is of version {}", saved.version)))
        }
    }

    /// Replaces the file: after a crash there is the old one or the new one.
    ///
    /// # Errors
    /// What the file system says; the old file is untouched then.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(&serde_json::to_vec(&Self { version: VERSION, ..self.clone() })?)?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        match path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}

/// The nodes of the last view of what these settings name, as a server before has left it. None if there is none, or it cannot
/// be read: the process says why.
pub fn last_view(settings: &MembersSettings) -> Vec<Member> {
    let Ok(Some(saved)) = SavedView::read(&settings.state_file) else { return Vec::new() };
    let prefix = settings.etcd.as_ref().map_or("", |etcd| &etcd.prefix);
    if saved.prefix != prefix {
        return Vec::new();
    }
    let mut members = match settings.etcd {
        Some(_) => View::restored(0, saved.cluster_id, saved.nodes, saved.orders).members(),
        None => Vec::new(),
    };
    members.extend(saved.dns);
    members
}

const VERSION: u32 = 1;

/// Of 64 nodes, 256 orders and 64 addresses.
const FILE_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_it_was_written_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("members.json");
        assert_eq!(SavedView::read(&path).unwrap(), None);
        let mut saved = SavedView { seen_at_s: 7, prefix: "/b/".into(), ..SavedView::default() };
        saved.orders.insert("a".into(), Directive { drained: true, weight: None });
        // A process died while it wrote.
        fs::write(folder.path().join("members.json.new"), "half").unwrap();
        saved.write(&path).unwrap();
        let read = SavedView::read(&path).unwrap().unwrap();
        assert_eq!((read.seen_at_s, read.prefix, read.orders), (7, saved.prefix, saved.orders));
        for bad in ["", "{}", "[]", r#"{"version":2}"#] {
            fs::write(&path, bad).unwrap();
            assert!(SavedView::read(&path).is_err(), "{bad}");
        }
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(SavedView::read(&path).is_err());
    }
}
