//! What of this repository runs in the processes of applications: built where the server under test was.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex};

use rustix::fs::Access;
use rustix::io::Errno;
use tempfile::TempDir;

/// The preload library.
pub(crate) fn preload() -> &'static Path {
    static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| library("libbaton_preload.so", "baton-preload"));
    &LIBRARY
}

/// A folder with the drop-in libfcgi under its soname.
pub(crate) fn dropin() -> &'static Path {
    static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let library = library("libfcgi.so", "baton-libfcgi");
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

/// A library beside the server's executable, rebuilt if it is older than its sources: no crate depends on it, so
/// cargo does not build it for these tests.
fn library(name: &str, package: &str) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let folder = Path::new(env!("CARGO_BIN_EXE_baton")).parent().expect("a folder");
    let library = folder.join(name);
    // In a virtual machine, which only reads it: `scripts/test-kernel-tls` has built it before.
    if rustix::fs::access(folder, Access::WRITE_OK) == Err(Errno::ROFS) {
        return library;
    }
    let _guard = ONE_AT_A_TIME.lock().expect("nobody has failed");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--locked", "--package", package, "--target-dir"]);
    build.arg(folder.parent().expect("the target folder")).current_dir(repository());
    if folder.ends_with("release") {
        build.arg("--release");
    }
    assert!(build.status().expect("cargo").success(), "{package} cannot be built");
    library
}
