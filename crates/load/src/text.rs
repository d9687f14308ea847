//! The bytes of the files that a load asks for: text that tells which file it is of, and where.

use std::fs;
use std::io;
use std::path::Path;

/// Writes one file. Its text repeats its own path, so that no two files are alike and a mix-up of files is visible.
///
/// # Errors
/// What creating and writing files may say, with the name of the file.
pub fn write_one(root: &Path, path: &str, bytes: u64) -> io::Result<()> {
    let place = root.join(path.trim_start_matches('/'));
    if fs::metadata(&place).is_ok_and(|found| found.len() == bytes) {
        return Ok(());
    }
    write_text(root, path, &text(path, bytes))
}

/// Writes a file with this text, unless it has it already.
///
/// # Errors
/// What creating and writing files may say, with the name of the file.
pub fn write_text(root: &Path, path: &str, text: &str) -> io::Result<()> {
    let place = root.join(path.trim_start_matches('/'));
    if fs::read(&place).is_ok_and(|found| found == text.as_bytes()) {
        return Ok(());
    }
    let folder = place.parent().unwrap_or(root);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&place, text));
    written.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", place.display())))
}

/// The text of the file under this path on the server.
pub fn text(path: &str, bytes: u64) -> String {
    let line = line(path, bytes);
    let mut text = line.repeat(bytes as usize / line.len() + 1);
    text.truncate(bytes as usize);
    text
}

fn line(path: &str, bytes: u64) -> String {
    format!("<p>This is {path}, {bytes} bytes of plain and patient text, meant only to be counted.\n")
}

/// Whether such a file has these bytes at `offset`.
pub(super) fn has(path: &str, bytes: u64, offset: u64, mut piece: &[u8]) -> bool {
    let line = line(path, bytes);
    let mut expected = &line.as_bytes()[(offset % line.len() as u64) as usize..];
    while !piece.is_empty() {
        let (now, later) = piece.split_at(piece.len().min(expected.len()));
        if now != &expected[..now.len()] {
            return false;
        }
        (piece, expected) = (later, line.as_bytes());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_file_are_known_wherever_they_begin() {
        let root = tempfile::tempdir().unwrap();
        write_one(root.path(), "/a", 1_000).unwrap();
        let text = fs::read(root.path().join("a")).unwrap();
        for (from, to) in [(0, 1_000), (0, 1), (83, 400), (999, 1_000), (500, 500)] {
            assert!(has("/a", 1_000, from as u64, &text[from..to]), "{from}..{to}");
        }
        assert!(!has("/a", 1_000, 1, &text[..500]));
        assert!(!has("/b", 1_000, 0, &text));
    }
}
