//! The answer to `baton ctl status`, for humans, in full. What engines tell differs by architecture and is shown as it comes.

use baton_report::days;
use clap::ValueEnum;
use serde_json::Value;

use super::pools;

/// A part of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Topic {
    /// Processes, connections and requests
    Workers,
    /// Addresses, sites and folders
    Sites,
    /// Certificates, and when they are renewed
    Certificates,
    /// Applications and their processes
    Applications,
    /// Origins, and why they get no requests
    Origins,
    /// What the loops of each worker tell
    Engine,
    /// Memory, descriptors, kernel
    Memory,
}

/// The status as lines.
pub(super) fn for_humans(status: &Value) -> String {
    let mut out = format!(
        "baton {}, {}, process {}, up {} s\n\n",
        plain(&status["version"]),
        plain(&status["state"]),
        plain(&status["pid"]),
        plain(&status["uptime_seconds"]),
    );
    settings(status, &["configuration", "architecture"], &mut out);
    out.push_str(&of_topic(status, Topic::Memory));
    settings(status, &["control_socket", "admin"], &mut out);
    for topic in [Topic::Sites, Topic::Certificates] {
        out.push_str(&of_topic(status, topic));
    }
    let reload = &status["last_reload"];
    if !reload.is_null() {
        let outcome = reload["error"].as_str().map_or("done".into(), |error| format!("failed: {error}"));
        out.push_str(&format!("{:16}{}, {outcome}\n", "last reload", plain(&reload["at"])));
    }
    for topic in [Topic::Workers, Topic::Applications, Topic::Origins] {
        let told = of_topic(status, topic);
        if !told.is_empty() {
            out.push_str(&format!("\n{told}"));
        }
    }
    out.push_str(&of_topic(status, Topic::Engine));
    out
}

/// A part of a status, in full.
pub(super) fn of_topic(status: &Value, topic: Topic) -> String {
    let mut out = String::new();
    match topic {
        Topic::Memory => {
            settings(status, &["cache_memory", "memory_pressure", "descriptors", "kernel_tls"], &mut out);
        }
        Topic::Sites => {
            for listener in elements(&status["listeners"]) {
                out.push_str(&format!("{:16}{}\n", "listener", plain(&listener["address"])));
            }
            for site in elements(&status["sites"]) {
                out.push_str(&format!("{:16}{}  {}\n", "site", plain(&site["name"]), plain(&site["root"])));
            }
        }
        Topic::Certificates => certificates(status, &mut out),
        Topic::Workers => out.push_str(&table(elements(&status["workers"]), &COLUMNS)),
        Topic::Applications => applications(status, &mut out),
        Topic::Origins => origins(elements(&status["origins"]), &mut out),
        Topic::Engine => {
            for worker in elements(&status["workers"]).iter().filter(|worker| worker["engine"].is_object()) {
                out.push_str(&format!("\nworker {}\n", plain(&worker["index"])));
                outline(&worker["engine"], 1, &mut out);
            }
        }
    }
    out
}

fn settings(status: &Value, keys: &[&str], out: &mut String) {
    for key in keys {
        out.push_str(&format!("{:16}{}\n", words(key), plain(&status[*key])));
    }
}

fn certificates(status: &Value, out: &mut String) {
    for one in elements(&status["certificates"]) {
        let (site, source) = (plain(&one["site"]), plain(&one["source"]));
        let left = one["days_left"].as_i64().map_or_else(|| "?".to_owned(), days);
        let key = plain(&one["key"]);
        out.push_str(&format!("{:16}{site}  {source} ({key}, {left} left)\n", "certificate"));
    }
    for plan in elements(&status["acme"]["plans"]) {
        let (name, next) = (plain(&plan["name"]), plain(&plan["next_order"]));
        out.push_str(&format!("{:16}{name}  next order {next}\n", "acme"));
        // The causes and remedies follow on lines of their own.
        for line in plan["error"].as_str().unwrap_or_default().lines() {
            out.push_str(&format!("{:18}{}\n", "", line.trim_start()));
        }
    }
}

fn applications(status: &Value, out: &mut String) {
    let applications = pools::rows(status);
    if !applications.is_empty() {
        out.push_str(&table(&applications, &pools::COLUMNS));
        for row in &applications {
            if let Some(why) = row["passfd_withheld"].as_str() {
                out.push_str(&format!("{}: no passfd: {why}\n", plain(&row["name"])));
            }
        }
    }
    let processes = pools::processes(status);
    if !processes.is_empty() {
        out.push('\n');
        out.push_str(&table(&processes, &pools::PROCESS_COLUMNS));
    }
}

fn origins(origins: &[Value], out: &mut String) {
    if origins.is_empty() {
        return;
    }
    out.push_str(&table(origins, &ORIGIN_COLUMNS));
    for one in origins {
        if let Some(why) = one["why"].as_str().filter(|why| !why.is_empty()) {
            out.push_str(&format!("{}: {}: {why}\n", plain(&one["origin"]), plain(&one["state"])));
        }
    }
}

/// Heads of the columns, and the keys of what stands in them.
const COLUMNS: [(&str, &str); 7] = [
    ("worker", "index"),
    ("pid", "pid"),
    ("cpu", "cpu"),
    ("restarts", "restarts"),
    ("open", "connections_open"),
    ("accepted", "connections_accepted"),
    ("requests", "requests"),
];

/// Heads of the columns of origins, and the keys of what stands in them.
const ORIGIN_COLUMNS: [(&str, &str); 9] = [
    ("origin", "origin"),
    ("site", "site"),
    ("route", "route"),
    ("state", "state"),
    ("weight", "weight"),
    ("in flight", "in_flight"),
    ("requests", "requests"),
    ("failures", "failures"),
    ("ejections", "ejections"),
];

/// Columns as wide as what is in them, numbers to the right.
pub(super) fn table(rows: &[Value], columns: &[(&str, &str)]) -> String {
    let cells: Vec<Vec<String>> =
        std::iter::once(columns.iter().map(|(head, _)| (*head).to_owned()).collect())
            .chain(rows.iter().map(|row| columns.iter().map(|(_, key)| plain(&row[*key])).collect()))
            .collect();
    let width = |column: usize| cells.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let line = |row: &Vec<String>| {
        let cells: Vec<_> =
            row.iter().enumerate().map(|(column, cell)| format!("{cell:>0$}", width(column))).collect();
        cells.join("  ") + "\n"
    };
    cells.iter().map(line).collect()
}

/// Keys and values, a line each, nested ones indented. An object of numbers takes one line.
fn outline(value: &Value, depth: usize, out: &mut String) {
    // Applications have a table of their own.
    let entries = value.as_object().into_iter().flatten().filter(|(key, _)| *key != pools::APPLICATIONS);
    for (key, value) in entries {
        let indent = "  ".repeat(depth);
        let key = words(key);
        match value.as_object() {
            Some(numbers) if numbers.values().all(Value::is_number) => {
                let numbers: Vec<_> =
                    numbers.iter().map(|(name, number)| format!("{} {number}", words(name))).collect();
                out.push_str(&format!("{indent}{key}: {}\n", numbers.join(", ")));
            }
            Some(_) => {
                out.push_str(&format!("{indent}{key}\n"));
                outline(value, depth + 1, out);
            }
            None => out.push_str(&format!("{indent}{key}: {}\n", plain(value))),
        }
    }
}

/// A key as a human writes it.
fn words(key: &str) -> String {
    key.replace('_', " ")
}

/// A value as a human writes it.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "-".into(),
        Value::String(text) => text.clone(),
        Value::Array(elements) if elements.is_empty() => "-".into(),
        Value::Array(elements) => elements.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

pub(super) fn elements(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn workers_stand_in_columns_and_engines_below() {
        let mut status = json!({
            "version": "1", "state": "running", "pid": 7, "uptime_seconds": 3, "configuration": "/b.toml",
            "architecture": "auto", "cache_memory": "8 MiB per worker", "memory_pressure": "not followed: why", "descriptors": "1024 per worker", "kernel_tls": "no: why not", "control_socket": null, "admin": [],
            "listeners": [{ "address": "127.0.0.1:80" }],
            "sites": [{ "name": "s", "root": "/srv" }],
            "acme": { "plans": [
                { "name": "a.example", "next_order": "2027-01-01", "failures": 0, "error": null },
                { "name": "b.example", "next_order": "2026-12-01", "failures": 2, "error": "no\n  remedy: wait" },
            ] },
            "certificates": [{ "site": "s", "source": "/c.pem", "key": "rsa", "days_left": 9 }],
            "workers": [
                { "index": 0, "pid": 8, "cpu": 0, "restarts": 0, "connections_open": 5, "connections_accepted": 12345,
                  "requests": 1, "engine": { "helpers": { "idle": 1, "under_way": 2 }, "auto": { "chose": "amped" } } },
                { "index": 1, "pid": null, "cpu": null, "restarts": 2, "connections_open": 0,
                  "connections_accepted": 9, "requests": 0, "engine": null },
            ],
        });
        let expected = "\
baton 1, running, process 7, up 3 s

configuration   /b.toml
architecture    auto
cache memory    8 MiB per worker
memory pressure not followed: why
descriptors     1024 per worker
kernel tls      no: why not
control socket  -
admin           -
listener        127.0.0.1:80
site            s  /srv
certificate     s  /c.pem (rsa, 9 days left)
acme            a.example  next order 2027-01-01
acme            b.example  next order 2026-12-01
                  no
                  remedy: wait

worker  pid  cpu  restarts  open  accepted  requests
     0    8    0         0     5     12345         1
     1    -    -         2     0         9         0

worker 0
  auto
    chose: amped
  helpers: idle 1, under way 2
";
        assert_eq!(for_humans(&status), expected);

        status["applications"] = json!([{ "name": "app", "address": "unix:/a", "processes": [{ "pid": 9, "state": "busy", "requests": 11 }],
            "restarts": 1, "recycled": 2, "killed": 3, "leaving": false }]);
        status["workers"][0]["engine"]["applications"] = json!([{ "address": "unix:/a", "idle": 2, "busy": 1, "waiting": 0, "requests": 12, "failures": 0, "transport": "shm", "answers": { "shm": 9, "unix": 3 } }]);
        let rows = "\n\
application  processes  idle  busy  waiting  restarts  recycled  killed  requests  failures  transport              answers
        app          1     2     1        0         1         2       3        12         0        shm  shm 75 %, unix 25 %

process  application  state  requests
      9          app   busy        11
";
        let (before, after) = expected.split_at(expected.find("\nworker 0\n").unwrap());
        assert_eq!(for_humans(&status), format!("{before}{rows}{after}"));

        status["workers"][0]["engine"]["applications"][0]["passfd_withheld"] = json!("because");
        let rows = rows.replace("unix 25 %\n", "unix 25 %\napp: no passfd: because\n");
        assert_eq!(for_humans(&status), format!("{before}{rows}{after}"));
    }
}
