//! Settings that name something outside the file: users, groups, folders. They are looked up while the configuration
//! is checked, so that a mistake is found before the server starts.

use std::path::PathBuf;

use baton_sys::process::identity;

use super::kind::{Kind, Reading};
use super::raw::Node;
use super::shown::Shown;
use super::text::{FilePath, TextOf, Wrong};

/// The name of a user of this system.
pub(crate) const USER_NAME: TextOf = TextOf {
    accepted: "the name of a user",
    check: |name| match identity(&name, None) {
        Ok(_) => Ok(name),
        Err(error) => Err(Wrong::new("is not known", error.to_string())),
    },
};

/// The name of a group of this system.
pub(crate) const GROUP_NAME: TextOf = TextOf {
    accepted: "the name of a group",
    // A group is looked up together with a user; root exists everywhere.
    check: |name| match identity("root", Some(&name)) {
        Ok(_) => Ok(name),
        Err(error) => Err(Wrong::new("is not known", error.to_string())),
    },
};

/// A folder that can be entered.
pub(crate) struct Folder;

impl Kind for Folder {
    type Value = PathBuf;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "the path of a folder".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<PathBuf> {
        let path = FilePath.read(node, reading)?;
        let entered = path.metadata().and_then(|metadata| {
            if !metadata.is_dir() {
                return Err(std::io::ErrorKind::NotADirectory.into());
            }
            Ok(rustix::fs::access(&path, rustix::fs::Access::EXEC_OK)?)
        });
        match entered {
            Ok(()) => Some(path),
            Err(error) => {
                let complaint = reading.complaint("cannot be served");
                reading.complain(complaint.at(node.span(), format!("{}: {error}", path.display())));
                None
            }
        }
    }

    fn write(&self, value: &PathBuf) -> toml::Value {
        FilePath.write(value)
    }
}
