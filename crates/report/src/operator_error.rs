//! An error for people: what failed, the likely cause, and a remedy.

use std::fmt;
use std::io;
use std::path::Path;

use rustix::io::Errno;

/// An error with its likely cause and a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorError {
    what: String,
    likely_cause: Option<String>,
    remedy: Option<String>,
}

impl OperatorError {
    /// An error whose message contains the reason.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), likely_cause: None, remedy: None }
    }

    /// An operation that failed with `error`.
    pub fn of(operation: impl fmt::Display, error: &io::Error) -> Self {
        Self::new(format!("cannot {operation}: {error}"))
    }

    /// Adds the likely cause.
    pub fn cause(self, cause: impl Into<String>) -> Self {
        Self { likely_cause: Some(cause.into()), ..self }
    }

    /// Adds a remedy.
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// A file that could not be created or opened: adds the cause that its path makes likely.
    pub fn about_file(self, path: &Path, error: &io::Error) -> Self {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match Errno::from_io_error(error) {
            Some(Errno::NOENT) => self
                .cause(format!("there is no directory {}", parent.display()))
                .remedy(format!("`mkdir -p {}`", parent.display())),
            Some(Errno::ACCESS | Errno::PERM) => self
                .cause(format!("user {} may not write there", rustix::process::geteuid().as_raw()))
                .remedy(format!("change who may write in {}, or choose another path", parent.display())),
            Some(Errno::ROFS) => {
                self.cause("the file system is mounted read-only").remedy("choose a path on another one")
            }
            Some(Errno::NOSPC | Errno::DQUOT) => self.cause("the disk, or the user's share of it, is full"),
            Some(Errno::ISDIR) => {
                self.cause(format!("{} is a directory", path.display())).remedy("name a file in it")
            }
            _ => self,
        }
    }
}

impl fmt::Display for OperatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(cause) = &self.likely_cause {
            write!(f, "\n  likely cause: {cause}")?;
        }
        if let Some(remedy) = &self.remedy {
            write!(f, "\n  remedy: {remedy}")?;
        }
        Ok(())
    }
}

impl std::error::Error for OperatorError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_path_tells_what_is_missing() {
        let about = |path: &str, errno: Errno| {
            let error = io::Error::from(errno);
            OperatorError::of("open the log", &error).about_file(Path::new(path), &error).to_string()
        };
        assert!(about("/no/such/log", Errno::NOENT).ends_with("remedy: `mkdir -p /no/such`"));
        assert!(about("log", Errno::NOENT).ends_with("remedy: `mkdir -p .`"));
        assert!(about("/var/log", Errno::ISDIR).contains("/var/log is a directory"));
    }
}
