//! Applications that cannot be started as they are configured.

use std::process::Command;

/// Goal: a missing library of an application is reported before the server serves.
#[test]
fn a_library_that_is_not_installed() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("www")).unwrap();
    std::fs::write(
        dir.path().join("baton.toml"),
        "[[site]]\nroot = \"www\"\nlisten = \"0\"\n[[site.route]]\npath = \"/a\"\n\
         fastcgi = { command = [\"sh\"], dropin = true }\n",
    )
    .unwrap();
    for command in ["check", "run"] {
        let output = Command::new(env!("CARGO_BIN_EXE_baton"))
            .args([command, "-c", "baton.toml"])
            .env("BATON_DROPIN", "/no/such/libfcgi.so.0")
            .current_dir(dir.path())
            .output()
            .unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(
            told.contains("cannot find dropin/libfcgi.so.0") && told.contains("`dropin = true` of sh"),
            "{told}"
        );
    }
}
