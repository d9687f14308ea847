//! What of this repository runs in the processes of applications, and is built where the server under test was.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use tempfile::TempDir;

/// The preload library.
pub(crate) fn preload() -> &'static Path {
    static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| library("libbaton_preload.so"));
    &LIBRARY
}

/// A folder with the drop-in libfcgi under its soname.
pub(crate) fn dropin() -> &'static Path {
    static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let library = library("libfcgi.so");
        std::os::unix::fs::symlink(library, folder.path().join("libfcgi.so.0")).expect("a link");
        folder
    });
    FOLDER.path()
}

/// The PHP extension, for the PHP of the distribution.
pub(crate) fn extension() -> &'static Path {
    static EXTENSION: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("php-extension");
        let script = repository().join("adapters/php/build-extension");
        let status = Command::new(script).arg(&folder).status().expect("adapters/php/build-extension");
        assert!(status.success(), "it needs phpize: install php-dev, as scripts/setup-tests does");
        folder.join("modules/baton.so")
    });
    &EXTENSION
}

/// The top of this repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// A library of the workspace. This package's tests depend on it, so cargo has built it with them.
fn library(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_baton")).parent().expect("a folder");
    let library = folder.join("deps").join(name);
    assert!(library.exists(), "cargo has not built {}", library.display());
    library
}
