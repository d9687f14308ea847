//! `baton ctl`: speaks to a running server.

use std::path::PathBuf;
use std::process::ExitCode;

use baton_master::control::{self, Command};
use clap::{Args, Subcommand, ValueHint};
use serde_json::Value;

use super::output::{Failure, print};
use super::status;

/// Ask a running server for its status, or to reload, drain, stop, reopen its logs or make way for its successor
#[derive(Debug, Args)]
pub(super) struct Ctl {
    #[command(subcommand)]
    request: Request,

    /// Control socket [default: the usual one of this user; the server says where it is when it starts]
    #[arg(long, global = true, value_name = "PATH", value_hint = ValueHint::FilePath, env = "BATON_CONTROL")]
    control: Option<PathBuf>,

    /// Print the server's answer as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Subcommand)]
enum Request {
    /// How the server is: workers, listeners, connections, what `auto` chose and why
    Status,
    /// Read the configuration again; connections stay open
    Reload,
    /// Accept nothing new, finish what is under way, end
    Drain,
    /// End at once
    Stop,
    /// Open the log files again, after they were renamed
    ReopenLogs,
    /// Start the executable that is there by now, let it take over, and drain, without refusing a client
    Upgrade,
}

impl Ctl {
    /// Asks, and prints the answer.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let path = self.control.clone().unwrap_or_else(control::usual_path);
        let command = match self.request {
            Request::Status => Command::Status,
            Request::Reload => Command::Reload,
            Request::Drain => Command::Drain,
            Request::Stop => Command::Stop,
            Request::ReopenLogs => Command::ReopenLogs,
            Request::Upgrade => Command::Upgrade,
        };
        let answer = control::request(&path, command)?;
        if self.json {
            return print(&format!("{answer}\n"));
        }
        let told: Value = serde_json::from_str(&answer)?;
        print(&match self.request {
            Request::Status => status::for_humans(&told),
            Request::Reload => reloaded(&told),
            Request::Drain => format!("draining: what is under way may take {} ms\n", told["limit_ms"]),
            Request::Stop => "stopping\n".into(),
            Request::ReopenLogs => "the logs are open again, by their names\n".into(),
            Request::Upgrade => format!("process {} has taken over\n", told["pid"]),
        })
    }
}

fn reloaded(told: &Value) -> String {
    if told["resumed"] == true {
        return "the workers are back, with the configuration as it was\n".into();
    }
    let settings = told["needs_restart"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<_> = settings.iter().filter_map(Value::as_str).collect();
    match names[..] {
        [] => "reloaded\n".into(),
        _ => format!("reloaded; needs a restart to take effect: {}\n", names.join(", ")),
    }
}
