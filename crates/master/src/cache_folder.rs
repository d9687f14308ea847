//! The folder of the shared cache: a part of it for each worker, which only the workers' user may enter.

use std::fs;
use std::path::Path;

use baton_cache::DiskSettings;
use baton_config::Config;
use baton_engine::arch::Topology;
use baton_report::{OperatorError, log};
use baton_store::{check_folder, prepare_folder, remove_folder};
use rustix::fs::{Gid, Uid};

use super::privileges::WorkerUser;

/// Whether the folder that is configured, if one is, could be used, and is large enough.
///
/// # Errors
/// Why not, with a remedy.
pub fn check_cache_folder(config: &Config, topology: &Topology) -> Result<(), OperatorError> {
    let Some(disk) = config.shared_cache.settings_of_worker().disk else { return Ok(()) };
    check_size(config, &disk, topology.processes)?;
    check_folder(&disk.folder)
}

/// Creates the folders of the workers, and removes those of workers that there are no more: what they have may have been
/// purged before there are so many workers again.
///
/// # Errors
/// The configured size is too small. A folder that cannot be used is reported: the cache goes on in memory.
pub(super) fn prepare(config: &Config, user: &WorkerUser, processes: usize) -> Result<(), OperatorError> {
    let Some(disk) = config.shared_cache.settings_of_worker().disk else { return Ok(()) };
    check_size(config, &disk, processes)?;
    let owner = match user {
        WorkerUser::Same(_) => None,
        WorkerUser::Other { identity, .. } => {
            Some((Uid::from_raw(identity.uid), Gid::from_raw(identity.gid)))
        }
    };
    let parts = (0..processes).map(|index| disk.of_process(index, processes).folder);
    for folder in std::iter::once(disk.folder.clone()).chain(parts) {
        if let Err(error) = prepare_folder(&folder, owner) {
            log::warning(format_args!("{error}\nthe shared cache stays in memory"));
            return Ok(());
        }
    }
    remove_unused(&disk.folder, processes);
    Ok(())
}

fn remove_unused(folder: &Path, processes: usize) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let index = entry.file_name().to_str().and_then(|name| name.parse::<usize>().ok());
        if index.is_some_and(|index| index >= processes)
            && let Err(error) = remove_folder(&entry.path())
        {
            log::warning(error);
        }
    }
}

fn check_size(config: &Config, disk: &DiskSettings, processes: usize) -> Result<(), OperatorError> {
    let least = BLOCKS_LEAST * config.shared_cache.block_bytes;
    if disk.of_process(0, processes).bytes_max >= least {
        return Ok(());
    }
    Err(OperatorError::new(format!(
        "shared_cache.disk_bytes_max = {} is too little for {processes} worker processes",
        disk.bytes_max
    ))
    .cause(format!("each has a part of its own, and needs {BLOCKS_LEAST} blocks at least: {least} bytes"))
    .remedy(format!(
        "set {} or more, or run fewer processes: `processes = 1` in [server]",
        least * processes as u64
    )))
}

/// With fewer blocks, hardly anything would stay until it is asked for again.
const BLOCKS_LEAST: u64 = 16;
