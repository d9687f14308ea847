//! `baton config convert`: a configuration of Baton from one of nginx, and what could not be taken over, line by line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use baton_nginx::{Includes, Weight, convert};
use baton_pattern::Pattern;
use clap::Args;

use super::output::{Failure, print};

/// Convert a configuration of nginx
///
/// What could not be taken over is said on the standard error output, line by line. Exit code 0: all was; 3: some lines are
/// left out; 2: some of them guard something, see what is said of GUARD; 1: it is no configuration of nginx.
#[derive(Debug, Args)]
pub(super) struct Convert {
    /// The configuration: nginx.conf, or a file of sites-enabled
    file: PathBuf,

    /// File for the result, instead of the standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Convert {
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let text = read(&self.file).map_err(|error| Failure(format!("{}: {error}", self.file.display())))?;
        let name = self.file.display().to_string();
        let mut files = Files::beside(&self.file)?;
        let converted = convert(&name, &text, &mut files)?;
        match &self.output {
            Some(output) => {
                let failed = |error| Failure(format!("{}: {error}", output.display()));
                fs::write(output, &converted.toml).map_err(failed)?;
            }
            None => {
                print(&converted.toml)?;
            }
        }
        let count = |weight| converted.notes.iter().filter(|note| note.weight == weight).count();
        for note in &converted.notes {
            let mark = if note.weight == Weight::Guard { "GUARD: " } else { "" };
            eprintln!("{}: {mark}{}", note.place, note.text);
        }
        let (left_out, guards) = (count(Weight::LeftOut), count(Weight::Guard));
        if guards > 0 {
            eprintln!(
                "\nGUARD: {guards} of these lines guard something and are not in force as they were. Do not serve this before \
                 you have read them."
            );
        }
        Ok(match (guards, left_out) {
            (0, 0) => ExitCode::SUCCESS,
            (0, _) => ExitCode::from(LEFT_OUT),
            _ => ExitCode::from(GUARD_LEFT_OUT),
        })
    }
}

/// Exit codes beside those of every command.
const LEFT_OUT: u8 = 3;
const GUARD_LEFT_OUT: u8 = 2;

/// A configuration may have names of files in any coding.
fn read(path: &Path) -> std::io::Result<String> {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The files around a configuration.
struct Files {
    folder: String,
    /// Folders that relative names are below: that of the file, and the one above, where `nginx.conf` is if this is a
    /// file of `sites-enabled`.
    folders: Vec<PathBuf>,
}

impl Files {
    fn beside(file: &Path) -> Result<Self, Failure> {
        let file = std::path::absolute(file)?;
        let folders: Vec<_> = file.ancestors().skip(1).take(2).map(Path::to_path_buf).collect();
        let is_main = file.file_name().is_some_and(|name| name == "nginx.conf");
        let main = if is_main { folders.first() } else { folders.last() };
        let folder = main.map(|folder| folder.display().to_string()).unwrap_or_default();
        Ok(Self { folder, folders })
    }
}

impl Includes for Files {
    fn read(&mut self, pattern: &str) -> Option<Vec<(String, String)>> {
        let is_glob = pattern.contains(['*', '?']);
        let found =
            self.folders.iter().map(|folder| matching(folder, pattern)).find(|found| !found.is_empty());
        let files = found.unwrap_or_default().into_iter().filter(|path| path.is_file());
        let files: Vec<_> =
            files.filter_map(|path| Some((path.display().to_string(), read(&path).ok()?))).collect();
        (is_glob || !files.is_empty()).then_some(files)
    }

    fn exists(&mut self, path: &str) -> bool {
        Path::new(path).is_file()
    }

    fn folder(&self) -> &str {
        &self.folder
    }
}

/// The paths that match a pattern, in the order of their names. An absolute pattern is not below the folder.
fn matching(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let start = if pattern.starts_with('/') { PathBuf::from("/") } else { folder.to_path_buf() };
    let mut paths = vec![start];
    for segment in pattern.split('/').filter(|segment| !segment.is_empty()) {
        paths = match segment.contains(['*', '?', '[']) {
            true => paths.iter().flat_map(|path| entries(path, segment)).collect(),
            false => paths.into_iter().map(|path| path.join(segment)).filter(|path| path.exists()).collect(),
        };
    }
    paths
}

fn entries(folder: &Path, glob: &str) -> Vec<PathBuf> {
    let Ok(pattern) = Pattern::glob(&format!("/{glob}")) else { return Vec::new() };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<_> = names
        .filter(|name| glob.starts_with('.') || !name.starts_with('.'))
        .filter(|name| pattern.matches(format!("/{name}").as_bytes()))
        .collect();
    names.sort();
    names.into_iter().map(|name| folder.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn includes_are_found_beside_the_file_and_above_it() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("sites/b.conf", "b"),
            ("sites/a.conf", "a"),
            ("sites/.c.conf", "c"),
            ("sites/d", "d"),
            ("mime.types", "t"),
        ] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let texts = |files: &mut Files, pattern: &str| {
            files.read(pattern).map(|found| found.into_iter().map(|(_, text)| text).collect::<String>())
        };
        let mut files = Files::beside(&folder.path().join("nginx.conf")).unwrap();
        assert_eq!(texts(&mut files, "sites/*.conf").as_deref(), Some("ab"));
        assert_eq!(texts(&mut files, "s*/?").as_deref(), Some("d"));
        assert_eq!(texts(&mut files, "none/*").as_deref(), Some(""));
        assert_eq!(texts(&mut files, "none"), None);
        let absolute = format!("{}/sites/b*", folder.path().display());
        assert_eq!(texts(&mut files, &absolute).as_deref(), Some("b"));
        let mut files = Files::beside(&folder.path().join("sites/d")).unwrap();
        assert_eq!(texts(&mut files, "mime.types").as_deref(), Some("t"));
        assert_eq!(files.folder(), folder.path().to_str().unwrap());
    }
}
