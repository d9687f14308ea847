//! The command line: sub-commands, a file each.
//!
//! Exit codes: 0 done; 1 the configuration is bad, or what was asked for failed; 2 the command line was not understood.

mod browser_advice;
mod bug_report;
mod check;
mod child;
mod cluster;
mod cluster_advice;
mod command_line;
mod config_file;
mod configuration;
#[cfg(feature = "convert")]
mod convert;
mod ctl;
mod ctl_cache;
mod ctl_cluster;
mod ctl_drain;
mod documents_status;
mod explain;
mod figures;
mod handoff_advice;
mod handoff_agent;
mod hash_password;
#[cfg(not(all(feature = "convert", feature = "sim", feature = "tune")))]
mod left_out;
mod limit_options;
mod listening;
mod local_ca;
mod manual;
mod origin_advice;
mod output;
mod php;
mod pools;
mod proxy;
mod serve;
mod server_flags;
#[cfg(feature = "sim")]
mod sim;
mod status;
mod status_summary;
mod tls_flag;
mod top;
#[cfg(feature = "tune")]
mod tune;

use std::process::ExitCode;

use baton_config::{Config, ConfigSource, RawConfig, Words};
use baton_confine::Kind;
use baton_engine::arch::ArchitectureName;
use clap::{CommandFactory, Parser, Subcommand};

use self::config_file::{ConfigFile, load, refused};
use self::output::{Failure, print};
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
    Proxy(Box<proxy::Proxy>),
    /// Run the server that a configuration file describes
    Run(ConfigFile),
    Check(check::Check),
    Config(configuration::Configuration),
    Explain(explain::Explain),
    Ctl(ctl::Ctl),
    Top(top::Top),
    BugReport(bug_report::BugReport),
    #[cfg(feature = "sim")]
    Sim(Box<sim::Sim>),
    /// Not in this build: the simulator of clusters
    #[cfg(not(feature = "sim"))]
    Sim(left_out::LeftOut),
    #[cfg(feature = "tune")]
    Tune(Box<tune::Tune>),
    /// Not in this build: the search for better settings
    #[cfg(not(feature = "tune"))]
    Tune(left_out::LeftOut),
    HashPassword(hash_password::HashPassword),
    LocalCa(local_ca::LocalCa),
    App(app::App),
    Cluster(cluster::Cluster),
    /// Obtain certificates: started by the server, not by hand
    #[cfg(feature = "acme")]
    #[command(hide = true)]
    Acme(child::Child),
    /// Follow the nodes of a cluster in etcd and DNS: started by the server, not by hand
    #[command(hide = true)]
    Members(child::Child),
    #[command(name = "mover")]
    HandoffAgent(handoff_agent::HandoffAgent),
    /// Share load with other servers: started by the server, not by hand
    #[command(hide = true)]
    Documents(child::Child),
    /// List the architectures: who runs which step of a request
    Architectures,
    Completions(manual::Completions),
    Man(manual::Man),
}

/// Runs what the command line asks for.
pub(crate) fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(serve) => start_serving(&serve),
        Command::Proxy(proxy) => start_proxy(&proxy),
        Command::Run(file) => start(ConfigSource::File(file.config)),
        Command::Check(check) => check.run(),
        Command::Config(configuration) => configuration.run(),
        Command::Explain(explain) => explain.run(),
        Command::Ctl(ctl) => ctl.run(),
        Command::Top(top) => top.run(),
        Command::BugReport(report) => report.run(),
        #[cfg(feature = "sim")]
        Command::Sim(sim) => sim.run(),
        #[cfg(not(feature = "sim"))]
        Command::Sim(left_out) => left_out.refuse("simulator", "sim"),
        #[cfg(feature = "tune")]
        Command::Tune(tune) => tune.run(),
        #[cfg(not(feature = "tune"))]
        Command::Tune(left_out) => left_out.refuse("search for better settings", "tune"),
        Command::HashPassword(hash) => hash.run(),
        Command::LocalCa(authority) => authority.run(),
        Command::App(app) => app.run().map_err(Failure::from),
        Command::Cluster(cluster) => cluster.run().map_err(Failure::from),
        #[cfg(feature = "acme")]
        Command::Acme(acme) => acme.run(Kind::Acme, baton_acme::run).map_err(Failure::from),
        Command::Members(members) => members.run(Kind::Members, baton_membership::run).map_err(Failure::from),
        Command::HandoffAgent(agent) => agent.run().map_err(Failure::from),
        Command::Documents(documents) => {
            documents.run(Kind::Documents, baton_dcws::run).map_err(Failure::from)
        }
        Command::Architectures => print(&architectures()),
        Command::Completions(completions) => completions.run(Cli::command()),
        Command::Man(man) => man.run(Cli::command()),
    };
    result.unwrap_or_else(|failure| {
        eprintln!("{}", failure.0);
        ExitCode::FAILURE
    })
}

fn start_serving(serve: &serve::Serve) -> Result<ExitCode, Failure> {
    start_by_flags(serve.raw()?, &serve.server, &serve.listening, |config| {
        let (_, script) = config.unsent_scripts().into_iter().next()?;
        let script = script.file.display();
        Some(format!(
            "note: scripts are not sent, such as {script}: --php runs .php files, --script-sources sends all as they are"
        ))
    })
}

fn start_proxy(proxy: &proxy::Proxy) -> Result<ExitCode, Failure> {
    start_by_flags(proxy.raw()?, &proxy.server, &proxy.listening, |_| None)
}

/// Starts the server that flags describe, or prints its configuration. `advice`: what to tell of it before.
fn start_by_flags(
    raw: RawConfig,
    flags: &server_flags::ServerFlags,
    listening: &listening::Listening,
    advice: impl FnOnce(&Config) -> Option<String>,
) -> Result<ExitCode, Failure> {
    let source = ConfigSource::CommandLine(Box::new(raw));
    if flags.print_config {
        return print(&load(&source)?.to_toml());
    }
    let config = load_to_run(&source)?;
    for note in listening.note().into_iter().chain(advice(&config)) {
        eprintln!("{note}");
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

fn architectures() -> String {
    let words = ArchitectureName::words();
    let width = words.iter().map(|(word, ..)| word.len()).max().unwrap_or(0);
    words.iter().map(|(word, _, meaning)| format!("{word:width$}  {meaning}\n")).collect()
}
