//! The base of all experiments: the prepared machine, servers and applications on it, and the cost of their
//! processes.

mod boxes;
mod certificate;
mod group;
mod machine;
pub mod network;
pub(crate) mod processes;
mod programs;
mod volume;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rustix::process::getuid;

pub use boxes::{BoxSettings, Boxes, MemoryBound, ServerBox};
pub use certificate::Certificate;
pub(crate) use group::Groups;
pub(crate) use machine::{CpuTicks, Isolation, Machine, favour, platform};
pub(crate) use programs::{allowed_cpus, find_program, output_of, run, search_path};

/// The address of a server on this port.
pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Names of the `.toml` files in a folder of the lab, sorted.
pub(crate) fn names_in(folder: &str) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| {
        format!("{folder}: the lab finds servers and experiments in the checkout that it was built from")
    })?;
    let name = |entry: fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(".toml")?.to_owned());
    let mut names: Vec<String> = entries.flatten().filter_map(name).collect();
    names.sort();
    Ok(names)
}

/// The process that has made a network or a control group of this name, if a lab has.
pub(crate) fn maker_of(name: &str) -> Option<&str> {
    let (pid, _) = name.strip_prefix(PREFIX)?.split_once('-')?;
    pid.bytes().all(|byte| byte.is_ascii_digit()).then_some(pid)
}

/// Names of networks and control groups begin so; the number of their process follows.
pub(crate) const PREFIX: &str = "baton-lab-";

/// Creates the folder, and refuses one of another user: paths below `/tmp` are predictable, and configurations there
/// run as root. The path is absolute, as servers change their folder.
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
