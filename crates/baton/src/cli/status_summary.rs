//! The essentials of a status, on a screen of 24 lines and 80 columns.

use baton_report::{counted, days};
use serde_json::Value;

use super::figures::{Traffic, duration, short, traffic};
use super::pools;
use super::status::{elements, plain};

/// The essentials, in aligned lines.
pub(super) fn summary(status: &Value) -> String {
    let mut lines = vec![head(status), String::new()];
    let mut line = |name: &str, told: String| lines.push(format!("{name:14}{told}"));
    line("configuration", configuration(status));
    line("architecture", architecture(status));
    line("listening", listed(elements(&status["listeners"]).iter().map(|one| plain(&one["address"]))));
    let sites: Vec<String> = elements(&status["sites"]).iter().map(|one| plain(&one["name"])).collect();
    line("sites", format!("{}: {}", sites.len(), listed(sites.iter().cloned())));
    line("workers", workers(status));
    let sum =
        |key: &str| elements(&status["workers"]).iter().filter_map(|one| one[key].as_u64()).sum::<u64>();
    let (open, accepted) = (sum("connections_open"), sum("connections_accepted"));
    line("connections", format!("{} open, {} accepted", short(open), short(accepted)));
    let all = Traffic::sum(&traffic(status, None, "sites"));
    let [ok, moved, client, server] = all.classes.map(short);
    line(
        "requests",
        format!(
            "{}, {} in flight; 2xx {ok}, 3xx {moved}, 4xx {client}, 5xx {server}",
            short(sum("requests")),
            all.in_flight
        ),
    );
    let quantiles = [500, 900, 990].map(|per_mille| duration(all.quantile_us(per_mille)));
    let [half, most, nearly_all] = quantiles;
    line("latency", format!("p50 {half}, p90 {most}, p99 {nearly_all}, since the start"));
    if let Some(told) = certificates(status) {
        line("certificates", told);
    }
    if let Some(told) = applications(status) {
        line("applications", told);
    }
    let answers = pools::shares(&status["totals"]["answers"]);
    if !answers.is_empty() {
        line("answers", answers.join(", "));
    }
    let origins = elements(&status["origins"]);
    if !origins.is_empty() {
        line("origins", servers(origins, "origin"));
    }
    let nodes = elements(&status["cluster"]["nodes"]);
    if !nodes.is_empty() {
        line(
            "cluster",
            format!("{}; policy {}", servers(nodes, "name"), plain(&status["cluster"]["policy"])),
        );
    }
    for (name, key) in [("control", "control_socket"), ("admin", "admin")] {
        line(name, plain(&status[key]));
    }
    lines.push(String::new());
    lines.push("More: --all, or one of workers, sites, certificates, applications, origins,".into());
    lines.push("engine, memory behind `status`; live: baton top".into());
    lines.iter().map(|line| cut(line) + "\n").collect()
}

fn head(status: &Value) -> String {
    format!(
        "baton {}, {}, process {}, up {}",
        plain(&status["version"]),
        plain(&status["state"]),
        plain(&status["pid"]),
        age(status["uptime_seconds"].as_u64().unwrap_or(0)),
    )
}

/// How long something has lasted.
pub(super) fn age(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

fn configuration(status: &Value) -> String {
    let reload = &status["last_reload"];
    let file = plain(&status["configuration"]);
    if reload.is_null() {
        return file;
    }
    let outcome = if reload["error"].is_null() { "reloaded" } else { "reload FAILED" };
    format!("{file}, {outcome} {}", plain(&reload["at"]))
}

/// The architecture, and what it has chosen for itself.
pub(super) fn architecture(status: &Value) -> String {
    let name = plain(&status["architecture"]);
    let mut choices: Vec<String> = Vec::new();
    for worker in elements(&status["workers"]) {
        choose(&worker["engine"], &mut choices);
    }
    match choices.is_empty() {
        true => name,
        false => format!("{name}: {}", choices.join(", ")),
    }
}

/// Finds what loops have chosen, however many there are.
fn choose(engine: &Value, choices: &mut Vec<String>) {
    for (key, value) in engine.as_object().into_iter().flatten() {
        match value.as_str() {
            Some(word) if ["sending", "chose"].contains(&key.as_str()) => {
                if !choices.iter().any(|known| known == word) {
                    choices.push(word.to_owned());
                }
            }
            _ => choose(value, choices),
        }
    }
    elements(engine).iter().for_each(|one| choose(one, choices));
}

fn workers(status: &Value) -> String {
    let workers = elements(&status["workers"]);
    let serving = workers.iter().filter(|worker| worker["serves"] == true).count();
    let restarts: u64 = workers.iter().filter_map(|worker| worker["restarts"].as_u64()).sum();
    let still: Vec<String> = workers
        .iter()
        .filter(|worker| worker["stands_still"] == true)
        .map(|worker| plain(&worker["index"]))
        .collect();
    let still = if still.is_empty() { String::new() } else { format!("; STUCK: {}", still.join(", ")) };
    format!("{serving} of {} serve, {}{still}", workers.len(), counted(restarts, "restart"))
}

fn certificates(status: &Value) -> Option<String> {
    let all = elements(&status["certificates"]);
    let next = all.iter().min_by_key(|one| one["days_left"].as_i64())?;
    let left = next["days_left"].as_i64().map_or_else(|| "?".to_owned(), days);
    Some(format!("{}; next ends in {left}: {}", all.len(), plain(&next["site"])))
}

fn applications(status: &Value) -> Option<String> {
    let rows = pools::rows(status);
    let sum = |key: &str| rows.iter().filter_map(|row| row[key].as_u64()).sum::<u64>();
    let told = || {
        let [idle, busy, waiting, failures] = ["idle", "busy", "waiting", "failures"].map(sum);
        format!(
            "{}: {busy} busy, {idle} idle, {waiting} waiting, {}",
            rows.len(),
            counted(failures, "failure")
        )
    };
    (!rows.is_empty()).then(told)
}

/// How many servers there are, and which do not serve.
fn servers(all: &[Value], name: &str) -> String {
    let is_up = |one: &&Value| ["up", "slow-start"].contains(&one["state"].as_str().unwrap_or("up"));
    let down = all
        .iter()
        .filter(|one| !is_up(one))
        .map(|one| format!("{} {}", plain(&one[name]), plain(&one["state"])));
    let down: Vec<String> = down.collect();
    match down.is_empty() {
        true => format!("{} up", all.len()),
        false => format!("{} of {} up; {}", all.len() - down.len(), all.len(), listed(down.into_iter())),
    }
}

/// The first of them, and how many more there are.
fn listed(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    let mut told = String::new();
    for (at, one) in all.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        if at > 0 && told.chars().count() + one.chars().count() > LISTED_CHARACTERS_MAX {
            return format!("{told} and {} more", all.len() - at);
        }
        told.push_str(comma);
        told.push_str(one);
    }
    if told.is_empty() { "-".into() } else { told }
}

/// A line of a screen.
pub(super) fn cut(line: &str) -> String {
    match line.char_indices().nth(COLUMNS) {
        None => line.to_owned(),
        Some(_) => line.chars().take(COLUMNS - 1).chain(['…']).collect(),
    }
}

/// Columns of a terminal that no user has made wider.
const COLUMNS: usize = 80;

/// Characters of a list, so that its end still has room.
const LISTED_CHARACTERS_MAX: usize = 48;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Goal: whatever is configured, a screen has room for it. Method: a thousand of everything, with long names.
    #[test]
    fn a_screen_has_room() {
        let name = |n: usize| format!("a-very-long-name-of-something-{n}.example.org");
        let many = |one: fn(String) -> Value| (0..1000).map(|n| one(name(n))).collect::<Vec<_>>();
        let status = json!({
            "version": "1", "state": "serving", "pid": 7, "uptime_seconds": 200_000, "configuration": "/etc/baton/baton.toml",
            "architecture": "auto", "control_socket": "/run/b", "admin": [name(1), name(2)],
            "last_reload": { "at": "2027-01-01", "error": "no" },
            "listeners": many(|name| json!({ "address": name })),
            "sites": many(|name| json!({ "name": name })),
            "certificates": many(|name| json!({ "site": name, "days_left": 9 })),
            "workers": many(|_| json!({ "serves": true, "restarts": 1, "stands_still": true, "index": 7, "connections_open": 1,
                "connections_accepted": 2, "requests": 3, "engine": { "auto": { "chose": "amped" } } })),
            "applications": many(|name| json!({ "name": name, "address": name, "processes": [] })),
            "totals": { "answers": { "unix": 0, "passfd": 3, "declined-compression": 1 } },
            "origins": many(|name| json!({ "origin": name, "state": "drained" })),
            "cluster": { "policy": "lard-h", "nodes": many(|name| json!({ "name": name, "state": "up" })) },
            "figures": { "bounds_us": [100], "sites": [{ "name": "s", "requests": 9, "in_flight": 2, "body_bytes": 1,
                "buckets": [8, 1], "codes": { "200": 8, "503": 1 } }], "upstreams": [] },
        });
        let screen = summary(&status);
        assert!(screen.lines().count() <= 24, "{screen}");
        assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
        for part in [
            "baton 1, serving, process 7, up 2 d 7 h\n",
            "\nconfiguration /etc/baton/baton.toml, reload FAILED 2027-01-01\n",
            "\narchitecture  auto: amped\n",
            "\nworkers       1000 of 1000 serve, 1000 restarts; STUCK: 7, 7",
            "\nconnections   1000 open, 2000 accepted\n",
            "\nrequests      3000, 2 in flight; 2xx 8, 3xx 0, 4xx 0, 5xx 1\n",
            "\nlatency       p50 62us, p90 100us, p99 100us, since the start\n",
            "\nanswers       passfd 75 %, declined-compression 25 %\n",
            "\norigins       0 of 1000 up; a-very",
        ] {
            assert!(screen.contains(part), "{part:?} in\n{screen}");
        }
    }

    #[test]
    fn one_of_everything_is_one() {
        let status = json!({
            "certificates": [{ "site": "s", "days_left": 1 }],
            "workers": [{ "serves": true, "restarts": 1, "engine": { "applications": [{ "address": "b", "failures": 1 }] } }],
            "applications": [{ "name": "a", "address": "b", "processes": [] }],
        });
        let screen = summary(&status);
        for part in ["1 of 1 serve, 1 restart\n", "1; next ends in 1 day: s\n", " waiting, 1 failure\n"] {
            assert!(screen.contains(part), "{part:?} in\n{screen}");
        }
    }
}
