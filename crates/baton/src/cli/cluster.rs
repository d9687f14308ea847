//! `baton cluster`: what the members of a cluster have in common.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use baton_report::OperatorError;
use baton_tls::{MemberAuthority, MemberKey, PemFile};
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
    /// Make a key for members of a cluster: one that all share, or with --authority one of a single member
    ///
    /// Members name the file with `key` in [cluster]. Front-ends hand connections over to members, and nodes take connections from
    /// them. A host that has the file is a member. Only the file's owner may read it. One member of an authority can be shut out by its
    /// name: `revoked` in [cluster]. With a shared key, all need a new one then.
    Key {
        /// The file to make, which must not be there yet [default: standard output]
        file: Option<PathBuf>,
        /// The file of `baton cluster authority`: it signs for this member alone
        #[arg(long, requires = "member", value_name = "FILE")]
        authority: Option<PathBuf>,
        /// The name of this member: letters, digits and hyphens
        #[arg(long, requires = "authority", value_name = "NAME")]
        member: Option<String>,
    },
    /// Make an authority that signs keys of single members, for ten years
    ///
    /// Keep the file where keys are made: no member needs it. A host that has it can make itself a member.
    Authority {
        /// The file to make, which must not be there yet [default: standard output]
        file: Option<PathBuf>,
    },
}

impl Cluster {
    /// Does what was asked for.
    pub(super) fn run(&self) -> Result<ExitCode, OperatorError> {
        let now = SystemTime::now();
        let (file, key) = match &self.command {
            Command::Key { file, authority: Some(authority), member: Some(member) } => {
                (file, load(authority)?.sign(member, now)?)
            }
            Command::Key { file, .. } => (file, MemberKey::generate(now)?),
            Command::Authority { file } => (file, MemberAuthority::make(now)?),
        };
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

fn load(path: &Path) -> Result<MemberAuthority, OperatorError> {
    let bytes = fs::read(path).map_err(|error| {
        OperatorError::of(format_args!("read the authority at {}", path.display()), &error)
            .about_file(path, &error)
            .remedy(format!("`baton cluster authority {}` makes one", path.display()))
    })?;
    MemberAuthority::load(&PemFile::new(path.display().to_string(), bytes))
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
