//! What guards, ids and logs cost: one build of Baton, a setting more in each contender, the same request for a cached file.
//!
//! It measures as [`bench`](crate::bench) does. The request carries what each setting looks at, so that it is the same for all.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::comparison::{Contender, Rounds, Task, markdown};
use crate::files;
use crate::load::LoadRequest;
use crate::rig::{Entry, Isolation, Machine, Running, own_folder};

/// What to compare and how long.
#[derive(Clone, Debug)]
pub struct GuardsSettings {
    /// Commands of this project. Only the first has settings; the others, named by their folders, show what it costs that
    /// there are any.
    pub batons: Vec<PathBuf>,
    /// How often each contender is measured.
    pub rounds: usize,
    /// How long each time.
    pub duration: Duration,
    /// Where files and logs are put; kept for the next run.
    pub folder: PathBuf,
}

/// Measures, and returns the tables as Markdown.
///
/// # Errors
/// If there are fewer than two CPUs, the folder cannot be written, or one of the servers cannot be started.
pub fn run(settings: &GuardsSettings) -> Result<String> {
    let folder = own_folder(&settings.folder).with_context(|| settings.folder.display().to_string())?;
    let machine = Machine::prepare(Isolation::WhenRoot, 1)?;
    let root = folder.join("root");
    files::write_all(&root, 0)?;
    let mut servers = Vec::new();
    for entry in entries(&settings.batons) {
        let server = Running::start(&entry, &machine, &folder, &root).context(entry.name)?;
        servers.push(Contender { server, application: None });
    }
    let rounds = Rounds { count: settings.rounds, duration: settings.duration, sleep: false };
    let mut cells = Vec::new();
    rounds.measure(SmallFile, &servers, &machine, |cell| {
        eprintln!("{cell}");
        cells.push(cell);
        Ok(())
    })?;
    Ok(markdown(&cells, &machine.description()))
}

/// The contenders, without a setting first.
fn entries(batons: &[PathBuf]) -> Vec<Entry> {
    let Some((baton, others)) = batons.split_first() else { return Vec::new() };
    let with = |name: &str, settings: &[&str]| {
        let settings: Vec<_> = settings.iter().map(|setting| format!("site.{setting}")).collect();
        Entry::baton(baton, "auto").workers(1).settings(&settings).named(name)
    };
    let plain = with("nothing", &[]);
    let logging = plain.logging().map(|entry| entry.named("access log"));
    let folder = |baton: &PathBuf| baton.parent().and_then(|folder| folder.file_name()).map(PathBuf::from);
    let other = |baton: &PathBuf| {
        let name = format!("nothing, {}", folder(baton).unwrap_or_default().display());
        Entry::baton(baton, "auto").workers(1).named(&name)
    };
    let mut entries = vec![plain];
    entries.extend(others.iter().map(other));
    entries.extend(logging);
    entries.extend(SETTINGS.iter().map(|(name, settings)| with(name, settings)));
    entries
}

/// Each contender with the settings of its site.
const SETTINGS: [(&str, &[&str]); 9] = [
    ("methods", &["methods=[\"GET\", \"POST\"]"]),
    ("allow, deny", &["allow=[\"127.0.0.0/8\", \"10.0.0.0/8\"]", "deny=[\"127.1.0.0/16\"]"]),
    ("real_ip", &["real_ip={from=[\"127.0.0.0/8\"]}"]),
    ("rate_limit", &["rate_limit={requests=1000000}"]),
    ("basic_auth", &[LOGIN]),
    ("request_id", &["request_id=true"]),
    ("traceparent", &["traceparent=true"]),
    ("a regular expression", &["route=[{regex='\\.php$', respond={status=404}}, {path=\"/\"}]"]),
    ("try_files", &["try_files=[\"$path\", \"$path/\", \"=404\"]"]),
];

/// The user `ada`, whose password is `lovelace`.
const LOGIN: &str =
    "basic_auth={users={ada=\"$2y$12$/vfhyHY/uBddgGDevg7/KuG1goyNqCArK23lrh.AmIRsLMfCbFFni\"}}";

/// 1 KB by 64 kept connections, asked for with all that guards look at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct SmallFile;

impl Task for SmallFile {
    fn connections(self) -> usize {
        64
    }

    fn requests(self) -> Vec<LoadRequest> {
        vec![LoadRequest::file("/1k.html", 1 << 10)]
    }

    fn fields(self) -> &'static str {
        "Authorization: Basic YWRhOmxvdmVsYWNl\r\nX-Forwarded-For: 203.0.113.7\r\n"
    }
}

impl fmt::Display for SmallFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("1 KB")
    }
}
