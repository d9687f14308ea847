//! What is said over the control socket.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PurgeRequest;

/// What a running server can be asked to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    /// Tell how it is.
    Status,
    /// Read the configuration again.
    Reload,
    /// Accept nothing new, finish what is under way, end.
    Drain,
    /// Start new workers in the place of the old ones, which give their clients to them.
    Recycle,
    /// End at once.
    Stop,
    /// Open the log files again, by their names.
    ReopenLogs,
    /// Start the executable that is there by now, let it take over, and drain.
    Upgrade,
    /// Send no more requests to the origin at this URL.
    DrainOrigin(String),
    /// Send requests to it again.
    UndrainOrigin(String),
    /// About the cluster.
    Cluster(ClusterCommand),
    /// Say where the document at a path is, and why.
    Document(String),
    /// Say what is here of the responses to a request.
    Cache(RouteQuestion),
    /// Drop responses from the shared cache.
    Purge(PurgeRequest),
}

/// What can be asked of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterCommand {
    /// Where a request would go now, and why.
    Why(RouteQuestion),
    /// Let a node get no new requests, or get them again; give it another weight.
    Order {
        /// Its name.
        node: String,
        /// `None`: as it is.
        drained: Option<bool>,
        /// `None`: as it is.
        weight: Option<u32>,
    },
}

/// What is asked of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RouteTopic {
    /// To which node of the cluster it goes.
    Node,
    /// What the shared cache has for it.
    Cache,
}

/// A request that an operator asks about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteQuestion {
    /// Its URL, or its path alone.
    pub url: String,
    /// Fields of its head.
    #[serde(default)]
    pub fields: Vec<(String, String)>,
    /// Its body; empty: it has none.
    #[serde(default)]
    pub body: String,
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Status => "status",
            Self::Reload => "reload",
            Self::Drain => "drain",
            Self::Recycle => "recycle",
            Self::Stop => "stop",
            Self::ReopenLogs => "reopen-logs",
            Self::Upgrade => "upgrade",
            Self::DrainOrigin(_) => "drain-origin",
            Self::UndrainOrigin(_) => "undrain-origin",
            Self::Cluster(_) => "cluster",
            Self::Document(_) => "document",
            Self::Cache(_) => "cache",
            Self::Purge(_) => "purge",
        })
    }
}

/// The line that a client sends.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    pub(super) command: Command,
}

/// The line that the server sends back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// The command was carried out; what there is to tell about it.
    Ok(Value),
    /// The command was not carried out, and why.
    Error(String),
}

impl Answer {
    /// The command was not carried out, and why.
    pub(crate) fn error(why: impl fmt::Display) -> Self {
        Self::Error(why.to_string())
    }

    /// The line.
    pub(crate) fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("values and strings are valid JSON");
        line.push(b'\n');
        line
    }
}

impl From<Result<Value, String>> for Answer {
    fn from(result: Result<Value, String>) -> Self {
        result.map_or_else(Self::Error, Self::Ok)
    }
}

/// The command in a line.
///
/// # Errors
/// What is wrong with it, for the answer.
pub(crate) fn parse(line: &[u8]) -> Result<Command, String> {
    serde_json::from_slice::<Request>(line)
        .map(|request| request.command)
        .map_err(|error| format!("not a request that this server knows: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_strictly() {
        assert_eq!(parse(b"{\"command\":\"reopen-logs\"}\n"), Ok(Command::ReopenLogs));
        let line = b"{\"command\":{\"drain-origin\":\"http://a\"}}\n";
        assert_eq!(parse(line), Ok(Command::DrainOrigin("http://a".into())));
        assert!(parse(b"{\"command\":\"explode\"}\n").unwrap_err().contains("explode"));
        assert!(parse(b"{\"command\":\"stop\",\"force\":true}\n").unwrap_err().contains("force"));
        assert!(parse(b"stop\n").is_err());
        let all = PurgeRequest { all: true, ..PurgeRequest::default() };
        assert_eq!(parse(b"{\"command\":{\"purge\":{\"all\":true}}}\n"), Ok(Command::Purge(all)));
        assert!(parse(b"{\"command\":{\"purge\":{\"al\":true}}}\n").unwrap_err().contains("`al`"));
    }

    /// docs/compatibility.md promises that later servers understand the commands of earlier ones: a line that is gone here
    /// breaks that.
    #[test]
    fn lines_of_earlier_versions_are_understood() {
        let of_0_1_0 = [
            r#""status""#,
            r#""reload""#,
            r#""drain""#,
            r#""recycle""#,
            r#""stop""#,
            r#""reopen-logs""#,
            r#""upgrade""#,
            r#"{"drain-origin":"http://a"}"#,
            r#"{"undrain-origin":"http://a"}"#,
            r#"{"cluster":{"why":{"url":"http://a/b","fields":[["A","b"]],"body":"c"}}}"#,
            r#"{"cluster":{"order":{"node":"n","drained":true,"weight":null}}}"#,
            r#"{"purge":{"urls":["https://a/b"],"prefixes":[],"tags":["t"],"all":false}}"#,
        ];
        for command in of_0_1_0 {
            let line = format!("{{\"command\":{command}}}\n");
            assert!(parse(line.as_bytes()).is_ok(), "{line}");
        }
    }

    #[test]
    fn answers_fit_on_a_line() {
        let line = Answer::error("baton.toml:3:1\nunknown key").to_line();
        assert_eq!(line, b"{\"error\":\"baton.toml:3:1\\nunknown key\"}\n");
    }
}
