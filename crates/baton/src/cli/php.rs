//! `--php`: the php-fpm that runs, or else one to be started.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use baton_report::OperatorError;

/// Where PHP is.
#[derive(Debug)]
pub(super) enum Php {
    /// php-fpm listens there.
    Running(PathBuf),
    /// This program can be started.
    Program(PathBuf),
}

impl Php {
    /// Looks for the distribution's, the newest first.
    ///
    /// # Errors
    /// There is none, and how to get one.
    pub(super) fn find() -> Result<Self, OperatorError> {
        let sockets =
            newest_first(Path::new(SOCKETS), |name| name.starts_with("php") && name.ends_with("-fpm.sock"));
        if let Some(socket) = sockets.into_iter().find(|socket| UnixStream::connect(socket).is_ok()) {
            return Ok(Self::Running(socket));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain(PROGRAMS.map(PathBuf::from));
        let is_program = |name: &str| {
            let version = name.strip_prefix("php-fpm");
            version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
        };
        let found = folders.flat_map(|folder| newest_first(&folder, is_program)).next();
        found.map(Self::Program).ok_or_else(|| {
            OperatorError::new("there is no php-fpm on this system").remedy(
                "install it (`apt install php-fpm`, `dnf install php-fpm`), or give its address: \
                 --fastcgi '/=HOST:PORT,scripts=[\".php\"]'",
            )
        })
    }
}

const SOCKETS: &str = "/run/php";
const PROGRAMS: [&str; 2] = ["/usr/local/sbin", "/usr/sbin"];

/// Files of a folder with such names, the highest version in front.
fn newest_first(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| is_wanted(name))
        .collect();
    let version = |name: &String| -> Vec<u32> {
        name.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
    };
    names.sort_by_key(|name| std::cmp::Reverse(version(name)));
    names.into_iter().map(|name| folder.join(name)).collect()
}
