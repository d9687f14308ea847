//! What every experiment stands on: the machine made ready, servers and applications that run
//! on it, and what their processes cost.

mod application;
mod machine;
pub(crate) mod processes;
mod server;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use rustix::process::getuid;

pub(crate) use application::{Application, Extension, Program, compile_ad_rotation, drop_in};
pub use machine::Isolation;
pub(crate) use machine::{CpuTicks, Machine};
pub(crate) use server::{Entry, OTHER_NAMES, Running, search_path};

/// The address of a server on this port.
pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Makes the folder, and refuses one that somebody else has put there: a place below `/tmp` is known beforehand, and
/// configurations that are found there are run as root. The path is absolute, as servers change their folder.
pub(crate) fn own_folder(folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let found = fs::symlink_metadata(folder)?;
    ensure!(
        found.is_dir() && found.uid() == getuid().as_raw(),
        "this is not a folder of ours: name another one with --folder"
    );
    Ok(folder.canonicalize()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_a_link_is_not_ours() {
        let place = tempfile::tempdir().unwrap();
        let (real, link) = (place.path().join("real"), place.path().join("link"));
        assert!(own_folder(&real).unwrap().is_absolute());
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert!(own_folder(&link).is_err());
    }
}
