//! Configurations of nginx that are converted: those that are none have an error with a place, and leave no result; all others
//! become files that `baton check` reads.

use std::path::Path;
use std::process::Command;

use crate::converted;

/// Goal: a conversion with exit code 0 is a file that Baton reads. Method: the committed corpus, and the files that are compared
/// with nginx.
#[test]
fn what_is_taken_over_as_a_whole_is_read() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for folder in ["../../fuzz/corpus/nginx_configuration", "tests/real_applications/nginx_files"] {
        for entry in std::fs::read_dir(here.join(folder)).expect("files") {
            let path = entry.expect("a file").path();
            println!("{}", path.display());
            let text = String::from_utf8_lossy(&std::fs::read(&path).expect("a file")).into_owned();
            let values = [
                ("{clear}", "127.0.0.1:8080"),
                ("{tls}", "127.0.0.1:8443"),
                ("{root}", "/srv"),
                ("{origin}", "127.0.0.1:3000"),
                ("{php}", "/run/php.sock"),
                ("{htpasswd}", "/etc/nginx/htpasswd"),
                ("{certificate}", "/c.pem"),
                ("{key}", "/k.pem"),
            ];
            let text = values.iter().fold(text, |text, (mark, value)| text.replace(mark, value));
            converted::readable(text.as_bytes());
            count += 1;
        }
    }
    assert!(count > 50, "{count} files");
}

/// Goal: a file that cannot be read as one of nginx has an error with file and line, and the result of before stays.
#[test]
fn what_is_no_configuration_leaves_no_result() {
    let circle = "server { include a.conf; }\n";
    let utf_16: Vec<u8> = "server { }".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let long = "a;\n".repeat(1_000_000);
    for (bytes, told) in [
        (b"server {\n  listen 80;\n".as_slice(), "a.conf:1:8: this block does not end"),
        (b"server {\n  root \"/srv;\n}\n", "a.conf:2:8: this quote does not end"),
        (b"server {\n  root /srv\0;\n}\n", "a.conf:2:1: a null byte: this is no text in UTF-8"),
        (&utf_16, "a.conf:1:1: a null byte: this is no text in UTF-8"),
        (circle.as_bytes(), "files include each other too deeply"),
        (long.as_bytes(), "there are too many directives"),
        (b"}\n", "a.conf:1:1: there is no block to end"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.conf"), bytes).unwrap();
        std::fs::write(dir.path().join("baton.toml"), "# of before\n").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_baton"))
            .args(["config", "convert", "a.conf", "--output", "baton.toml"])
            .current_dir(dir.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(told), "{told}: {said}");
        assert!(output.stdout.is_empty());
        assert_eq!(std::fs::read_to_string(dir.path().join("baton.toml")).unwrap(), "# of before\n");
    }
}

/// Goal: directives that are not known, and words in other encodings, are named with their lines.
#[test]
fn what_is_not_known_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let text =
        [b"server {\n  listen 127.0.0.1:8080;\n  frobnicate on;\n  root /srv/".as_slice(), b"\xfcber;\n}\n"]
            .concat();
    std::fs::write(dir.path().join("a.conf"), text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["config", "convert", "a.conf"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    for told in ["a.conf:3:3: \"frobnicate\" has no counterpart", "a.conf:4:3: this is not in UTF-8"] {
        assert!(said.contains(told), "{told}: {said}");
    }
}
