//! `baton cluster`: what the members of a cluster have in common.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use baton_report::OperatorError;
use baton_tls::MemberKey;
use clap::{Args, Subcommand};
use rustix::fs::{FileType, Mode};

/// Prepare a cluster
#[derive(Debug, Args)]
pub(super) struct Cluster {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make the key that all members of a cluster share
    ///
    /// Copy the file to all members, and name it with `key` in [cluster]. Whoever has it is a member: front-ends hand
    /// connections over to members, and nodes take connections from them. Only the file's owner may read it.
    Key {
        /// The file to make, which must not be there yet [default: standard output]
        file: Option<PathBuf>,
    },
}

impl Cluster {
    /// Does what was asked for.
    pub(super) fn run(&self) -> Result<ExitCode, OperatorError> {
        let Command::Key { file } = &self.command;
        let key = MemberKey::generate(SystemTime::now())?;
        match file {
            Some(path) => write_new(path, key.as_bytes()).map_err(|error| {
                let trouble = OperatorError::of(format_args!("make {}", path.display()), &error)
                    .about_file(path, &error);
                match error.kind() {
                    io::ErrorKind::AlreadyExists => trouble
                        .cause("a cluster may use this key: its members do not know another one")
                        .remedy("name another file, or remove this one first"),
                    _ => trouble,
                }
            })?,
            None => print(key.as_bytes()).map_err(|error| OperatorError::of("write the key", &error))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write_new(path: &Path, key: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(key)?;
    file.sync_all()
}

/// A file that the shell has made for `>` becomes its owner's only, before the key is in it.
fn print(key: &[u8]) -> io::Result<()> {
    let stdout = io::stdout();
    let kind = FileType::from_raw_mode(rustix::fs::fstat(stdout.as_fd())?.st_mode);
    if kind == FileType::RegularFile {
        rustix::fs::fchmod(stdout.as_fd(), Mode::RUSR | Mode::WUSR)?;
    }
    let mut stdout = stdout.lock();
    stdout.write_all(key)?;
    stdout.flush()
}
