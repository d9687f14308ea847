//! What `baton ctl` prints: the answers of the control socket, for people.

use std::fmt::Write as _;

use serde_json::Value;

use super::control::Command;

/// The answer to `command`, as text that ends with a line feed. What is not in the answer is left out.
pub(crate) fn describe(command: Command, answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    match command {
        Command::Status => status(&answer),
        Command::Reload => match words(&answer["needs_restart"]).as_str() {
            "" => "reloaded\n".into(),
            settings => format!("reloaded; needs a restart: {settings}\n"),
        },
        Command::Drain => {
            let seconds = answer["limit_ms"].as_u64().unwrap_or_default().div_ceil(1000);
            format!("draining; what is under way has {seconds} s to finish\n")
        }
        Command::Stop => "stopping\n".into(),
        Command::ReopenLogs => match words(&answer["reopened"]).as_str() {
            "" => "no log is a file\n".into(),
            logs => format!("reopened: {logs}\n"),
        },
    }
}

fn status(status: &Value) -> String {
    let mut text = format!(
        "baton {}: {}, process {}, up {}\n",
        plain(&status["version"]),
        plain(&status["state"]),
        plain(&status["pid"]),
        duration(status["uptime_seconds"].as_u64().unwrap_or_default())
    );
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(text, "{name:<15} {value}");
        }
    };
    line("configuration", plain(&status["configuration"]));
    line("architecture", plain(&status["architecture"]));
    line("control socket", plain(&status["control_socket"]));
    line("monitoring", words(&status["admin"]));
    for listener in list(&status["listeners"]) {
        let passed = if listener["inherited"] == true { " (passed by the service manager)" } else { "" };
        line("listens on", format!("{}{passed}", plain(&listener["address"])));
    }
    for site in list(&status["sites"]) {
        let hosts = words(&site["hosts"]);
        let hosts = if hosts.is_empty() { String::new() } else { format!(" for {hosts}") };
        line("site", format!("{}: {}{hosts}", plain(&site["name"]), plain(&site["root"])));
    }
    let last = &status["last_reload"];
    line(
        "last reload",
        match (plain(&last["at"]), plain(&last["error"]), words(&last["needs_restart"])) {
            (at, error, _) if !error.is_empty() => format!("{at}: {error}"),
            (at, _, settings) if !settings.is_empty() => format!("{at}; needs a restart: {settings}"),
            (at, ..) => at,
        },
    );
    text.push('\n');
    let columns = ["worker", "process", "cpu", "restarts", "connections", "accepted", "requests"];
    let keys = ["index", "pid", "cpu", "restarts", "connections_open", "connections_accepted", "requests"];
    let mut rows = vec![columns.map(str::to_owned)];
    rows.extend(list(&status["workers"]).iter().map(|worker| {
        keys.map(|key| if worker[key].is_null() { "-".into() } else { plain(&worker[key]) })
    }));
    text += &table(&rows);
    for worker in list(&status["workers"]) {
        if let Some(engine) = worker["engine"].as_object().filter(|engine| !engine.is_empty()) {
            let _ = writeln!(text, "\nworker {}", plain(&worker["index"]));
            engine.iter().for_each(|(name, value)| tree(&mut text, 1, name, value));
        }
    }
    text
}

/// A value and what is in it, a line each.
fn tree(text: &mut String, depth: usize, name: &str, value: &Value) {
    let indent = 2 * depth;
    match value {
        Value::Object(values) => {
            let _ = writeln!(text, "{:indent$}{name}", "");
            values.iter().for_each(|(name, value)| tree(text, depth + 1, name, value));
        }
        Value::Array(values) if values.iter().any(|value| value.is_object() || value.is_array()) => {
            values.iter().enumerate().for_each(|(index, value)| tree(text, depth, &format!("{name} {index}"), value));
        }
        Value::Array(_) => {
            let _ = writeln!(text, "{:indent$}{name}: {}", "", words(value));
        }
        value => {
            let _ = writeln!(text, "{:indent$}{name}: {}", "", plain(value));
        }
    }
}

fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
    let line = |row: &[String; N]| {
        let cells: Vec<_> = row.iter().enumerate().map(|(column, cell)| format!("{cell:>0$}", width(column))).collect();
        cells.join("  ") + "\n"
    };
    rows.iter().map(line).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn words(value: &Value) -> String {
    list(value).iter().map(plain).collect::<Vec<_>>().join(", ")
}

/// Text without its quotes; nothing for null.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The two largest units that are not zero at its front: `2 d 3 h`, `5 s`.
fn duration(seconds: u64) -> String {
    let units = [(seconds / 86_400, "d"), (seconds / 3600 % 24, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")];
    let first = units.iter().position(|(count, _)| *count > 0).unwrap_or(units.len() - 1);
    let shown: Vec<_> = units[first..].iter().take(2).map(|(count, unit)| format!("{count} {unit}")).collect();
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_sentences() {
        let answer = |command, json| describe(command, json);
        assert_eq!(answer(Command::Reload, r#"{"needs_restart":[]}"#), "reloaded\n");
        assert_eq!(
            answer(Command::Reload, r#"{"needs_restart":["server.user","cache.policy"]}"#),
            "reloaded; needs a restart: server.user, cache.policy\n"
        );
        assert_eq!(answer(Command::ReopenLogs, r#"{"reopened":["access","error"]}"#), "reopened: access, error\n");
        let drain = "draining; what is under way has 2 s to finish\n";
        assert_eq!(answer(Command::Drain, r#"{"limit_ms":1500}"#), drain);
    }

    #[test]
    fn a_status_is_a_page() {
        let json = r#"{"version":"1.0","state":"serving","pid":7,"uptime_seconds":93784,"architecture":"auto",
            "listeners":[{"address":"[::]:80","inherited":true}],
            "sites":[{"name":"a","root":"/srv","hosts":["a.org"]}],"last_reload":null,
            "workers":[
                {"index":0,"pid":8,"cpu":0,"restarts":0,"connections_open":12,"connections_accepted":100,"requests":5000,
                 "engine":{"loop":{"helpers":2,"why":"blocked"}}},
                {"index":1,"pid":null,"cpu":1,"restarts":3,"connections_open":0,"connections_accepted":1,"requests":1,
                 "engine":null}]}"#;
        let expected = "\
baton 1.0: serving, process 7, up 1 d 2 h
architecture    auto
listens on      [::]:80 (passed by the service manager)
site            a: /srv for a.org

worker  process  cpu  restarts  connections  accepted  requests
     0        8    0         0           12       100      5000
     1        -    1         3            0         1         1

worker 0
  loop
    helpers: 2
    why: blocked
";
        assert_eq!(describe(Command::Status, json), expected);
    }

    #[test]
    fn durations_show_two_units() {
        assert_eq!(duration(0), "0 s");
        assert_eq!(duration(61), "1 min 1 s");
        assert_eq!(duration(86_400), "1 d 0 h");
    }
}
