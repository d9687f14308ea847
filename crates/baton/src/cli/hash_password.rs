//! `baton hash-password`: a line for `.htpasswd`.

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

use baton_password::{Algorithm, hash};
use clap::{Args, ValueEnum};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use super::output::{Failure, print};

/// Read a password and print its hash, for `basic_auth`
///
/// The password is read from standard input: a line, not shown on a terminal and asked for twice there.
#[derive(Debug, Args)]
pub(super) struct HashPassword {
    /// Name of the user: prints a line of a .htpasswd file. Without it, only the hash
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// How the password is hashed
    #[arg(short, long, value_enum, default_value = "bcrypt")]
    algorithm: Choice,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Choice {
    /// What .htpasswd files usually have: at most 72 bytes of a password
    Bcrypt,
    /// Argon2id, with 19 MiB of memory
    Argon2,
}

impl HashPassword {
    /// Reads and prints.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let name = self.name.unwrap_or_default();
        if name.contains(':') || name.chars().any(char::is_control) {
            return Err(Failure("error: the name of a user has no colon".into()));
        }
        let algorithm = match self.algorithm {
            Choice::Bcrypt => Algorithm::Bcrypt,
            Choice::Argon2 => Algorithm::Argon2,
        };
        let password = read_password()?;
        if password.is_empty() {
            return Err(Failure("error: the password is empty".into()));
        }
        let hash = hash(algorithm, password.as_bytes())?;
        print(&if name.is_empty() { format!("{hash}\n") } else { format!("{name}:{hash}\n") })
    }
}

fn read_password() -> Result<String, Failure> {
    if !io::stdin().is_terminal() {
        return Ok(read_line()?);
    }
    let password = ask("password: ")?;
    if ask("again: ")? != password {
        return Err(Failure("error: these are two passwords".into()));
    }
    Ok(password)
}

/// Asks on the terminal, which does not show the answer.
fn ask(what: &str) -> io::Result<String> {
    let stdin = io::stdin();
    let shown = tcgetattr(&stdin)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    eprint!("{what}");
    io::stderr().flush()?;
    tcsetattr(&stdin, OptionalActions::Flush, &hidden)?;
    let line = read_line();
    tcsetattr(&stdin, OptionalActions::Flush, &shown)?;
    eprintln!();
    line
}

fn read_line() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    line.truncate(line.trim_end_matches(['\r', '\n']).len());
    Ok(line)
}
