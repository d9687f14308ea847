//! Programs that `scripts/setup-tests` builds.

use std::path::{Path, PathBuf};

/// A program, in the path or where `scripts/setup-tests` puts it.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_BIN_EXE_baton")).ancestors().nth(2)?;
    let folders = std::env::var_os("PATH")?;
    let mut folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    folders.push(target.join("tools/bin"));
    folders.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}
