//! Builds the programs in C, and runs chains of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use tempfile::TempDir;

/// Where the programs are. The compiler is told where the library is.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    for program in ["rules", "stage"] {
        compile(program, folder.path());
    }
    folder
});

fn compile(program: &str, folder: &Path) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = library();
    let status = Command::new("cc")
        .args(["-O1", "-g", "-Wall", "-Werror", "-o"])
        .arg(folder.join(program))
        .arg(here.join(format!("tests/programs/{program}.c")))
        .arg("-I")
        .arg(here.join("include"))
        .arg(library.join("libbaton_iolite.so"))
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .status()
        .expect("cc is installed");
    assert!(status.success(), "{program}.c is not compiled");
}

/// The folder of the library that cargo has built for this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_owned()
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
