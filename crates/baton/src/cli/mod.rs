//! The command line: sub-commands, a file each.
//!
//! Exit codes: 0 done; 1 the configuration is bad, or what was asked for failed; 2 the command line was not understood.

mod check;
mod command_line;
mod configuration;
mod ctl;
mod explain;
mod listening;
mod manual;
mod php;
mod pools;
mod serve;
mod sim;
mod status;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use baton_config::{Config, ConfigError, ConfigSource, Words};
use baton_engine::arch::ArchitectureName;
use clap::{Args, Parser, Subcommand, ValueHint};

use crate::app;

/// A web server that hands data and connections over instead of copying them
#[derive(Debug, Parser)]
#[command(name = "baton", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<serve::Serve>),
    /// Run the server that a configuration file describes
    Run(ConfigFile),
    Check(check::Check),
    Config(configuration::Configuration),
    Explain(explain::Explain),
    Ctl(ctl::Ctl),
    Sim(Box<sim::Sim>),
    App(app::App),
    /// List the architectures: who runs which step of a request
    Architectures,
    Completions(manual::Completions),
    Man(manual::Man),
}

/// Which configuration file.
#[derive(Debug, Args)]
struct ConfigFile {
    /// Configuration file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, env = "BATON_CONFIG",
          default_value = "/etc/baton/baton.toml")]
    config: PathBuf,
}

/// What goes wrong in a sub-command: a message for a human.
#[derive(Debug)]
struct Failure(String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Runs what the command line asks for.
pub(crate) fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(serve) => start_serving(&serve),
        Command::Run(file) => start(ConfigSource::File(file.config)),
        Command::Check(check) => check.run(),
        Command::Config(configuration) => configuration.run(),
        Command::Explain(explain) => explain.run(),
        Command::Ctl(ctl) => ctl.run(),
        Command::Sim(sim) => sim.run(),
        Command::App(app) => app.run().map_err(Failure::from),
        Command::Architectures => print(&architectures()),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
    };
    result.unwrap_or_else(|failure| {
        eprintln!("{}", failure.0);
        ExitCode::FAILURE
    })
}

fn start_serving(serve: &serve::Serve) -> Result<ExitCode, Failure> {
    let source = ConfigSource::CommandLine(Box::new(serve.raw()?));
    if serve.print_config {
        return print(&load(&source)?.to_toml());
    }
    let config = load_to_run(&source)?;
    if let [(_, script), ..] = &config.unsent_scripts()[..] {
        eprintln!(
            "note: scripts are not sent, such as {}: --php runs .php files, --script-sources sends all as they are",
            script.file.display()
        );
    }
    Ok(baton_master::run(config, source)?)
}

fn start(source: ConfigSource) -> Result<ExitCode, Failure> {
    Ok(baton_master::run(load_to_run(&source)?, source)?)
}

fn load_to_run(source: &ConfigSource) -> Result<Config, Failure> {
    source.load().map_err(|error| {
        baton_master::report_failed_upgrade(&error.to_string());
        refused(&error)
    })
}

fn load(source: &ConfigSource) -> Result<Config, Failure> {
    source.load().map_err(|error| refused(&error))
}

/// What is wrong with a configuration, in colour where somebody sees it.
fn refused(error: &ConfigError) -> Failure {
    let styled =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    Failure(error.render(styled))
}

/// Prints a result. A reader that has seen enough (`baton config --default | head`) is no failure.
fn print(text: &str) -> Result<ExitCode, Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn architectures() -> String {
    let words = ArchitectureName::words();
    let width = words.iter().map(|(word, ..)| word.len()).max().unwrap_or(0);
    words.iter().map(|(word, _, meaning)| format!("{word:width$}  {meaning}\n")).collect()
}

/// A field of a request or of a response, as a flag gives it.
fn parse_header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("expected NAME:VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
