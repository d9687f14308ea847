//! The document root of a measurement: files of fixed sizes, and the SPECweb99-like set.

use std::io;
use std::path::Path;

use super::site::specweb99::MixFile;
pub use super::text::{text, write_one, write_text};

/// The files of fixed size, as `(path on the server, bytes)`.
pub const FIXED: [(&str, u64); 4] =
    [("/1k.html", 1 << 10), ("/16k.html", 16 << 10), ("/100k.html", 100 << 10), ("/1m.html", 1 << 20)];

/// Writes files below `root` that are missing or have the wrong length: the fixed files, and the mix with this many
/// directories (about 5 MB each). Existing files are kept, so a second run costs nothing.
///
/// # Errors
/// What creating and writing files may say, with the name of the file.
pub fn write_all(root: &Path, mix_directories: usize) -> io::Result<()> {
    for (path, bytes) in FIXED {
        write_one(root, path, bytes)?;
    }
    for file in MixFile::all(mix_directories) {
        write_one(root, &file.path(), file.bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_file_has_its_length_and_a_wrong_one_is_mended() {
        let root = tempfile::tempdir().unwrap();
        write_all(root.path(), 1).unwrap();
        fs::write(root.path().join("1k.html"), "too short").unwrap();
        write_all(root.path(), 1).unwrap();

        let bytes = |path: &str| fs::metadata(root.path().join(&path[1..])).unwrap().len();
        for (path, expected) in FIXED {
            assert_eq!(bytes(path), expected, "{path}");
        }
        for file in MixFile::all(1) {
            assert_eq!(bytes(&file.path()), file.bytes(), "{}", file.path());
        }
    }
}
