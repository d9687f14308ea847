//! Settings that name something outside the file: users, groups, folders. They are looked up while the configuration
//! is checked, so that a mistake is found before the server starts.

use std::path::PathBuf;

use super::kind::{FilePath, Kind, Reading, Text};
use super::raw::Node;

/// The name of a user of this system.
pub(crate) struct UserName;

impl Kind for UserName {
    type Value = String;

    fn accepted(&self) -> String {
        "the name of a user".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<String> {
        let name = Text.read(node, reading)?;
        match baton_sys::process::identity(&name, None) {
            Ok(_) => Some(name),
            Err(error) => {
                reading.refuse(node.span(), "is not known", error.to_string());
                None
            }
        }
    }

    fn write(&self, value: &String) -> toml::Value {
        value.as_str().into()
    }
}

/// The name of a group of this system.
pub(crate) struct GroupName;

impl Kind for GroupName {
    type Value = String;

    fn accepted(&self) -> String {
        "the name of a group".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<String> {
        let name = Text.read(node, reading)?;
        // A group is looked up together with a user; root exists everywhere.
        match baton_sys::process::identity("root", Some(&name)) {
            Ok(_) => Some(name),
            Err(error) => {
                reading.refuse(node.span(), "is not known", error.to_string());
                None
            }
        }
    }

    fn write(&self, value: &String) -> toml::Value {
        value.as_str().into()
    }
}

/// A folder that can be entered.
pub(crate) struct Folder;

impl Kind for Folder {
    type Value = PathBuf;

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
