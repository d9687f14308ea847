//! The options of `baton app run`.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_config::{StopSignal, Target, find_program, libraries, target, words_of};
use baton_confine::Kind;
use baton_report::OperatorError;
use baton_sys::process::{Identity, identity};
use clap::{Args, ValueHint};
use rustix::thread::CapabilitySet;

use super::program::Program;

/// Keep the processes of a FastCGI application running
///
/// Each begins with a listening socket as its standard input, as FastCGI has it. A process that ends is replaced: at
/// once if it lived for long, else after a wait that doubles up to 10 s. SIGHUP replaces all of them one after the
/// other, SIGTERM and SIGINT end them. What they print goes to standard error.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Where all processes listen together: unix:PATH, HOST:PORT, or "stdin" for the socket that this program was
    /// started with. Without it the command is expected to listen by itself
    #[arg(short, long, value_name = "ADDRESS", value_parser = parse_listen, conflicts_with = "listen_each")]
    pub(super) listen: Option<Listen>,

    /// Where each process listens alone: at PREFIX.0, PREFIX.1 and so on
    #[arg(long, value_name = "unix:PREFIX", value_parser = parse_prefix)]
    pub(super) listen_each: Option<PathBuf>,

    /// Permissions of the sockets
    #[arg(long, value_name = "OCTAL", default_value = "660", value_parser = parse_mode)]
    pub(super) socket_mode: u32,

    /// User to whom the sockets belong
    #[arg(long, value_name = "NAME", value_hint = ValueHint::Username)]
    socket_user: Option<String>,

    /// Processes at a time
    #[arg(short, long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) processes: u32,

    /// Variable of the environment; without a value it is taken over. PATH, TZ and what chooses the language always
    /// are, nothing else is; may be repeated
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,

    /// Folder in which the processes begin
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: Option<PathBuf>,

    /// User whose rights the processes have, if started as root
    #[arg(short, long, value_name = "NAME", value_hint = ValueHint::Username)]
    user: Option<String>,

    /// Group of the processes [default: the user's]
    #[arg(short, long, value_name = "NAME", requires = "user")]
    group: Option<String>,

    /// Replace each process after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    lifetime: Option<u64>,

    /// Signal that asks a process to end
    #[arg(long, value_name = "SIGNAL", default_value = "term",
          value_parser = clap::builder::PossibleValuesParser::new(words_of::<StopSignal>()))]
    stop_signal: String,

    /// Seconds that a process has to end before it is killed
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    grace: u64,

    /// Let a program with FastCGI code of its own, such as php-fpm, answer clients directly
    #[arg(long)]
    preload: bool,

    /// Let a program that uses libfcgi answer clients directly
    #[arg(long)]
    dropin: bool,

    /// Processes at a time while requests wait for one; needs --process-table
    #[arg(long, value_name = "NUMBER", hide = true, requires = "process_table")]
    pub(super) processes_max: Option<u32>,

    /// Seconds after which a process ends that is more than the least and has nothing to do
    #[arg(long, value_name = "SECONDS", hide = true, default_value_t = 10)]
    idle: u64,

    /// Replace each process after so many requests; needs --process-table
    #[arg(long, value_name = "NUMBER", hide = true, requires = "process_table")]
    pub(super) requests_max: Option<u64>,

    /// Milliseconds that a process may go on with a request that no client waits for any more
    #[arg(long, value_name = "MILLISECONDS", hide = true, default_value_t = 60_000)]
    patience: u64,

    /// Where each process listens alone, at PREFIX.0 and so on, for the server whose process table comes by standard input
    #[arg(long, value_name = "PREFIX", hide = true, conflicts_with_all = ["listen", "listen_each"])]
    pub(super) process_table: Option<PathBuf>,

    /// File that always says which processes there are, and how often one was replaced, as JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) status: Option<PathBuf>,

    /// How the processes are called in messages
    #[arg(long, value_name = "NAME", hide = true)]
    name: Option<String>,

    /// End when this process does, which must have started this one
    #[arg(long, value_name = "PID", hide = true)]
    pub(super) parent: Option<u32>,

    /// They have the server's user: they may neither signal nor trace its processes
    #[arg(long, hide = true)]
    as_server: bool,

    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

/// Where processes listen together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Listen {
    /// At the socket that is this program's standard input.
    Stdin,
    /// At an address.
    At(Target),
}

impl Run {
    /// What is run, and as which user.
    ///
    /// # Errors
    /// Users, libraries and programs that do not exist.
    pub(super) fn program(&self) -> Result<Program, OperatorError> {
        self.find_program()?;
        let identity = self.user.as_deref().map(|user| look_up(user, self.group.as_deref())).transpose()?;
        let mut environment = self.environment();
        if self.preload {
            libraries::add_preload(&mut environment)?;
        }
        if self.dropin {
            libraries::add_dropin(&mut environment)?;
        }
        Ok(Program {
            command: self.command.clone(),
            environment,
            directory: self.directory.clone(),
            identity: identity.filter(|_| may_change_users()),
            kind: if self.as_server { Kind::ApplicationOfServer } else { Kind::Application },
        })
    }

    /// What cannot be run now is nothing to wait for, unless a server asks: it has looked, and may know of one to come.
    fn find_program(&self) -> Result<(), OperatorError> {
        let [program, ..] = self.command.as_slice() else { return Ok(()) };
        if self.parent.is_some() {
            return Ok(());
        }
        let program = program.to_string_lossy();
        let base = self.directory.as_deref().unwrap_or(Path::new(""));
        match find_program(&program, base) {
            Ok(_) => Ok(()),
            Err(why) => Err(OperatorError::new(format!("cannot run `{program}`: {why}"))),
        }
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let kept = std::env::vars_os().filter(|(name, _)| {
            let name = name.to_string_lossy();
            ALWAYS_KEPT.contains(&&*name) || name.starts_with("LC_")
        });
        let given = self.env.iter().filter_map(|variable| match variable.split_once('=') {
            Some((name, value)) => Some((name.into(), value.into())),
            None => Some((variable.into(), std::env::var_os(variable)?)),
        });
        kept.chain(given).collect()
    }

    /// The owner of the sockets, if it is not the user who runs this.
    pub(super) fn socket_owner(&self) -> Result<Option<Identity>, OperatorError> {
        self.socket_user.as_deref().map(|user| look_up(user, None)).transpose()
    }

    /// How the processes are called in messages.
    pub(super) fn name(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let program = self.command.first().map(Path::new);
        program.and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned()
    }

    pub(super) fn patience(&self) -> Duration {
        Duration::from_millis(self.patience)
    }

    pub(super) fn idle(&self) -> Duration {
        Duration::from_secs(self.idle)
    }

    pub(super) fn lifetime(&self) -> Option<Duration> {
        self.lifetime.map(Duration::from_secs)
    }

    pub(super) fn grace(&self) -> Duration {
        Duration::from_secs(self.grace)
    }

    pub(super) fn stop_signal(&self) -> i32 {
        StopSignal::of_word(&self.stop_signal).number()
    }
}

/// Variables that hardly any program can do without.
const ALWAYS_KEPT: [&str; 5] = ["PATH", "TZ", "LANG", "LANGUAGE", "TMPDIR"];

fn may_change_users() -> bool {
    let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
    rustix::thread::capabilities(None).is_ok_and(|has| has.effective.contains(needed))
}

fn look_up(user: &str, group: Option<&str>) -> Result<Identity, OperatorError> {
    identity(user, group).map_err(|error| OperatorError::new(error.to_string()))
}

fn parse_listen(text: &str) -> Result<Listen, String> {
    match text {
        "stdin" => Ok(Listen::Stdin),
        address => match target(address, Path::new(""))? {
            // A socket has one address.
            Target::Host(host, port) if host == "localhost" => {
                Ok(Listen::At(Target::Tcp((Ipv4Addr::LOCALHOST, port).into())))
            }
            Target::Host(host, _) => Err(format!("`{host}` is not an IP address")),
            target => Ok(Listen::At(target)),
        },
    }
}

fn parse_prefix(text: &str) -> Result<PathBuf, String> {
    match target(text, Path::new(""))? {
        Target::Unix(path) => Ok(path),
        Target::Tcp(_) | Target::Host(..) => Err("only Unix sockets can be numbered".into()),
    }
}

fn parse_mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| format!("expected an octal number up to 777, not `{text}`"))
}
