//! `baton ctl cluster drain`: shows what is left at the node, until it is empty.

use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use baton_master::control::{self, Command};
use baton_report::counted;
use serde_json::Value;

use super::output::{Failure, print};
use super::status::elements;

/// What a server knows of a node that is drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// It has not heard that the node is drained, or the node has not.
    Unheard,
    /// Connections of front-ends at the node, and requests of this server there.
    Some { connections: u64, requests: u64 },
    /// All requests at a node without a handoff agent, as it says.
    Requests(u64),
    /// Only front-ends know: the node does not tell, and this server is no front-end.
    Elsewhere,
}

impl Left {
    fn is_nothing(self) -> bool {
        matches!(self, Self::Some { connections: 0, requests: 0 } | Self::Requests(0))
    }
}

/// Asks the server again and again, prints what has changed, and fails if the node is not empty in time.
///
/// `by_etcd`: of a node that is drained in etcd, whether it says there what it has left.
pub(super) fn follow(
    control: &Path,
    node: &str,
    by_etcd: Option<bool>,
    wait: Duration,
) -> Result<ExitCode, Failure> {
    let until = Instant::now() + wait;
    let (mut told, mut empty_since) = (None, None);
    loop {
        let status: Value = serde_json::from_str(&control::request(control, Command::Status)?)?;
        let left = match by_etcd == Some(false) && status["cluster"].is_null() {
            true => Left::Elsewhere,
            false => left_at(&status, node),
        };
        let is_over = Instant::now() >= until;
        empty_since = left.is_nothing().then(|| empty_since.unwrap_or_else(Instant::now));
        // What has just come to the node is not in its first word in etcd.
        let is_settled = |since: Instant| by_etcd.is_none() || is_over || since.elapsed() >= SETTLED;
        let is_done = left == Left::Elsewhere || empty_since.is_some_and(is_settled);
        if (is_done || !left.is_nothing()) && told.replace(left) != Some(left) {
            print(&words(node, left))?;
        }
        if is_done {
            return Ok(ExitCode::SUCCESS);
        }
        if is_over {
            return Err(late(node, left, wait));
        }
        sleep(PAUSE);
    }
}

fn words(node: &str, left: Left) -> String {
    match left {
        Left::Unheard => format!("{node}: nothing heard of it yet\n"),
        Left::Elsewhere => format!("{node}: `baton ctl cluster` on a front-end says what is left\n"),
        left if left.is_nothing() => format!("{node} is empty\n"),
        Left::Requests(requests) => format!("{node}: {} left\n", counted(requests, "request")),
        Left::Some { connections, requests } => {
            let [connections, requests] =
                [(connections, "connection"), (requests, "request")].map(|(count, one)| counted(count, one));
            format!("{node}: {connections} of front-ends and {requests} of this server left\n")
        }
    }
}

fn late(node: &str, left: Left, wait: Duration) -> Failure {
    let remedy = match left {
        Left::Unheard => "  is the name right, and does its handoff agent run?",
        Left::Some { .. } | Left::Requests(_) | Left::Elsewhere => {
            "  the node stays drained, and the rest ends in its own time; `baton ctl drain` on the node sets it a limit"
        }
    };
    Failure(format!("{node} is not empty after {} s\n{remedy}", wait.as_secs()))
}

/// What is left of a node, by the status of a server.
fn left_at(status: &Value, node: &str) -> Left {
    let named = |list: &Value, key: &str| elements(list).iter().find(|one| one[key] == node).cloned();
    let listed = named(&status["cluster"]["nodes"], "name");
    let drain = named(&status["drains"], "node").filter(|drain| drain["is_drained"] == true);
    let counts_requests = drain.as_ref().is_some_and(|drain| drain["counts"] == "requests");
    // All of it, if the node has said how much that is.
    let left = match (drain, &listed) {
        (Some(drain), _) => drain["left"].as_u64().filter(|_| drain["reports"] != 0),
        (_, Some(listed)) => Some(listed["connections"].as_u64().unwrap_or(0)),
        (_, None) => None,
    };
    let is_drained = listed.as_ref().is_none_or(|listed| listed["state"] == "drained");
    match left.filter(|_| is_drained) {
        Some(requests) if counts_requests => Left::Requests(requests),
        Some(connections) => {
            let requests = listed.and_then(|listed| listed["load"].as_u64()).unwrap_or(0);
            Left::Some { connections, requests }
        }
        None => Left::Unheard,
    }
}

/// A node counts its connections once a second.
const SETTLED: Duration = Duration::from_secs(2);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Goal: the node's own word counts more than what this server knows of its own connections, and no word is not zero.
    #[test]
    fn a_node_is_empty_when_it_says_so() {
        let status = |reports: u64, left: u64| {
            json!({
                "drains": [{ "node": "a", "is_drained": true, "reports": reports, "left": left }],
                "cluster": { "nodes": [{ "name": "a", "state": "drained", "connections": 0, "load": 1 }] },
            })
        };
        assert_eq!(left_at(&status(0, 0), "a"), Left::Unheard);
        assert_eq!(left_at(&status(2, 7), "a"), Left::Some { connections: 7, requests: 1 });
        let elsewhere = json!({ "drains": status(1, 0)["drains"], "cluster": null });
        assert!(left_at(&elsewhere, "a").is_nothing(), "on another node");
        assert_eq!(left_at(&elsewhere, "b"), Left::Unheard, "no such node");
        let of_etcd =
            |state: &str| json!({ "cluster": { "nodes": [{ "name": "a", "state": state, "load": 0 }] } });
        assert_eq!(left_at(&of_etcd("up"), "a"), Left::Unheard, "the order is on its way");
        assert!(left_at(&of_etcd("drained"), "a").is_nothing());
        let mut of_requests = status(1, 3);
        of_requests["drains"][0]["counts"] = "requests".into();
        assert_eq!(left_at(&of_requests, "a"), Left::Requests(3), "this server's requests are among them");
    }

    #[test]
    fn what_is_left_is_said() {
        let left = Left::Some { connections: 1, requests: 2 };
        assert_eq!(words("a", left), "a: 1 connection of front-ends and 2 requests of this server left\n");
        assert_eq!(
            [1, 0].map(|left| words("a", Left::Requests(left))),
            ["a: 1 request left\n", "a is empty\n"]
        );
        assert!(late("a", Left::Unheard, Duration::from_secs(3)).0.contains("not empty after 3 s"));
    }
}
