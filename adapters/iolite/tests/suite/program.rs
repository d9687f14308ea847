//! Builds the programs in C, and runs chains of them.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use tempfile::TempDir;

/// Where the programs are, with the library.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    // Programs look for the name that the library has where it is installed.
    symlink(library(), folder.path().join("libbaton_iolite.so.0")).unwrap();
    for program in ["rules", "stage"] {
        compile(program, folder.path());
    }
    folder
});

fn compile(program: &str, folder: &Path) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let status = Command::new("cc")
        .args(["-O1", "-g", "-Wall", "-Werror", "-pthread", "-o"])
        .arg(folder.join(program))
        .arg(here.join(format!("tests/programs/{program}.c")))
        .arg("-I")
        .arg(here.join("include"))
        .arg(folder.join("libbaton_iolite.so.0"))
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .status()
        .expect("cc is installed");
    assert!(status.success(), "{program}.c is not compiled");
}

/// The library that cargo has built for this test.
fn library() -> PathBuf {
    std::env::current_exe().unwrap().with_file_name("libbaton_iolite.so")
}

/// A program.
pub(crate) fn program(name: &str) -> PathBuf {
    FOLDER.path().join(name)
}

/// What a shell prints that finds `stage` in its path. It fails if any program of a chain does.
pub(crate) fn shell(script: &str) -> String {
    let path = format!("{}:{}", FOLDER.path().display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", script])
        .env("PATH", path)
        .output()
        .expect("bash is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {} {said}", output.status);
    String::from_utf8(output.stdout).unwrap()
}
