//! Applications in the status: what the master knows of those that it started, and what all workers tell of their
//! connections to each, in one row per application.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Heads of the columns, and the keys of what stands in them.
pub(super) const COLUMNS: [(&str, &str); 12] = [
    ("application", "name"),
    ("processes", "processes"),
    ("idle", "idle"),
    ("busy", "busy"),
    ("waiting", "waiting"),
    ("restarts", "restarts"),
    ("recycled", "recycled"),
    ("killed", "killed"),
    ("requests", "requests"),
    ("failures", "failures"),
    ("transport", "transport"),
    ("answers", "answers"),
];

/// The rows: applications that the server started, then others by address.
pub(super) fn rows(status: &Value) -> Vec<Value> {
    let mut told: BTreeMap<String, PoolReport> = BTreeMap::new();
    for worker in status["workers"].as_array().into_iter().flatten() {
        collect(&worker["engine"], &mut told);
    }
    let started = status["applications"].as_array().cloned().unwrap_or_default();
    let mut rows = Vec::new();
    for pool in &started {
        let address = pool["address"].as_str().unwrap_or_default();
        let name = pool["name"].as_str().unwrap_or_default();
        let leaving = if pool["leaving"] == true { " (leaving)" } else { "" };
        let mut row = told.remove(address).unwrap_or_default().row(format!("{name}{leaving}"));
        let processes = pool["processes"].as_array().map_or(&[][..], Vec::as_slice);
        row["processes"] = json!(processes.len());
        // Beside connections that are kept: processes to which there is none.
        let unused = processes.iter().filter(|process| process["state"] == "idle").count() as u64;
        row["idle"] = json!(row["idle"].as_u64().unwrap_or(0) + unused);
        for key in ["restarts", "recycled", "killed"] {
            row[key] = pool[key].clone();
        }
        rows.push(row);
    }
    rows.extend(told.into_iter().map(|(address, told)| told.row(address)));
    rows
}

/// Heads of the columns of single processes, and the keys of what stands in them.
pub(super) const PROCESS_COLUMNS: [(&str, &str); 4] =
    [("process", "pid"), ("application", "application"), ("state", "state"), ("requests", "requests")];

/// The processes of applications that the server started.
pub(super) fn processes(status: &Value) -> Vec<Value> {
    let pools = status["applications"].as_array().into_iter().flatten();
    let processes = pools.flat_map(|pool| {
        pool["processes"].as_array().into_iter().flatten().map(|process| {
            let mut row = process.clone();
            row["application"] = pool["name"].clone();
            row
        })
    });
    processes.collect()
}

/// What workers tell of one application.
#[derive(Debug, Default)]
struct PoolReport {
    sums: [u64; SUMS.len()],
    transports: Vec<String>,
    /// Complete answers, by how they have travelled.
    answers: BTreeMap<String, u64>,
    withheld: Option<String>,
}

/// What is added up.
const SUMS: [&str; 5] = ["idle", "busy", "waiting", "requests", "failures"];

impl PoolReport {
    fn add(&mut self, pool: &Value) {
        for (sum, key) in self.sums.iter_mut().zip(SUMS) {
            *sum += pool[key].as_u64().unwrap_or(0);
        }
        if let Some(transport) = pool["transport"].as_str()
            && !self.transports.iter().any(|known| known == transport)
        {
            self.transports.push(transport.to_owned());
        }
        for (transport, count) in pool["answers"].as_object().into_iter().flatten() {
            *self.answers.entry(transport.clone()).or_default() += count.as_u64().unwrap_or(0);
        }
        self.withheld = self.withheld.take().or_else(|| pool["passfd_withheld"].as_str().map(str::to_owned));
    }

    fn row(self, name: String) -> Value {
        let answers = shares(&json!(self.answers));
        let mut row = json!({ "name": name, "transport": self.transports, "answers": answers, "passfd_withheld": self.withheld });
        for (key, sum) in SUMS.into_iter().zip(self.sums) {
            row[key] = json!(sum);
        }
        row
    }
}

/// Each transport with its part of the answers, the largest first: `passfd 75 %`.
pub(super) fn shares(answers: &Value) -> Vec<String> {
    let counts = answers.as_object().into_iter().flatten();
    let mut counts: Vec<_> = counts
        .filter_map(|(transport, count)| Some((transport, count.as_u64().filter(|count| *count > 0)?)))
        .collect();
    let all: u64 = counts.iter().map(|(_, count)| count).sum();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.iter().map(|(transport, count)| format!("{transport} {} %", count * 100 / all)).collect()
}

/// Finds what the loops of an engine tell, however many there are of them.
fn collect(engine: &Value, told: &mut BTreeMap<String, PoolReport>) {
    match engine {
        Value::Object(entries) => {
            for (key, value) in entries {
                match value.as_array().filter(|_| key == APPLICATIONS) {
                    // Origins have a table of their own.
                    Some(pools) => pools.iter().filter(|pool| pool["is_origin"] != true).for_each(|pool| {
                        let address = pool["address"].as_str().unwrap_or_default();
                        told.entry(address.to_owned()).or_default().add(pool);
                    }),
                    None => collect(value, told),
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| collect(element, told)),
        _ => {}
    }
}

/// The key under which loops tell of applications.
pub(super) const APPLICATIONS: &str = "applications";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_loops_tell_is_added_up() {
        let pool = |address: &str, idle: u64, transport: &str| json!({ "address": address, "idle": idle, "busy": 1, "waiting": 0, "requests": 10, "failures": 2, "transport": transport, "answers": { transport: 6, "shm": 2 } });
        let process = |pid: u32, state: &str| json!({ "pid": pid, "state": state, "requests": 5 });
        let status = json!({
            "applications": [
                { "name": "app", "address": "unix:/a", "processes": [process(7, "busy"), process(8, "idle")],
                  "restarts": 3, "recycled": 4, "killed": 1, "leaving": true },
                { "name": "new", "address": "unix:/n", "processes": [process(9, "starting")],
                  "restarts": 0, "recycled": 0, "killed": 0, "leaving": false },
            ],
            "workers": [
                { "engine": { "loop": { "applications": [pool("unix:/a", 1, "passfd"), pool("unix:/b", 5, "plain")] } } },
                { "engine": { "loops": [{ "applications": [pool("unix:/a", 2, "plain")] }, { "applications": [pool("unix:/a", 4, "plain")] }] } },
                { "engine": null },
            ],
        });
        let rows = rows(&status);
        let told = |row: usize, key: &str| rows[row][key].to_string();
        let row = |row: usize| COLUMNS.map(|(_, key)| told(row, key)).join(" ");
        assert_eq!(
            row(0),
            r#""app (leaving)" 2 8 3 0 3 4 1 30 6 ["passfd","plain"] ["plain 50 %","passfd 25 %","shm 25 %"]"#
        );
        assert_eq!(row(1), r#""new" 1 0 0 0 0 0 0 0 0 [] []"#);
        assert_eq!(row(2), r#""unix:/b" null 5 1 0 null null null 10 2 ["plain"] ["plain 75 %","shm 25 %"]"#);
        assert_eq!(rows.len(), 3);
        let processes = processes(&status);
        let process = |row: usize| PROCESS_COLUMNS.map(|(_, key)| processes[row][key].to_string()).join(" ");
        assert_eq!(process(0), r#"7 "app" "busy" 5"#);
        assert_eq!((process(2), processes.len()), (r#"9 "new" "starting" 5"#.to_owned(), 3));
    }
}
