//! Compares servers whose memory is too small for the content, so that the disk decides, not the CPU.
//!
//! Each server runs in control groups that bound its memory, page cache included, and the rate at which it may read
//! from a device of its own. All servers are warmed up together, then take turns. A server is stopped (SIGSTOP)
//! between its turns; as the kernel takes pages from idle processes, it gets some load before each turn. Two
//! questions:
//!
//! 1. *How much* is served of a SPECweb99-like mix several times as large as memory.
//! 2. *How long* small files that are always in memory take while other connections keep asking for files that are
//!    not: an open load at a steady pace, whose latency counts from when a request was due.

mod table;
mod turn;
mod workload;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::getuid;
use serde_json::Value;

pub use crate::rig::Isolation;
use crate::rig::{Bounds, Entry, Groups, Image, Machine, Running, own_folder};
use table::Conditions;
use turn::{Contestant, Latency, Throughput, Turn};
use workload::Content;

/// What to compare, under which conditions and how long.
#[derive(Clone, Debug)]
pub struct DiskSettings {
    /// The command of this project.
    pub baton: PathBuf,
    /// Under which architectures to measure it; none: under each that it has.
    pub architectures: Vec<String>,
    /// More settings for all of them, as `section.key=value`.
    pub baton_settings: Vec<String>,
    /// CPUs of each server. Baton has as many workers as the architecture chooses for them, nginx one for each.
    pub cpus: usize,
    /// Whether nginx takes part, with and without `aio threads`.
    pub nginx: bool,
    /// Memory of each server, page cache included, in MiB.
    pub memory_mib: u64,
    /// Rate at which each server may read from its disk, in MB (10^6) per second.
    pub disk_mb_per_s: f64,
    /// How far the kernel reads ahead, in KiB.
    pub read_ahead_kb: u32,
    /// How many directories of 5.1 MB the content has.
    pub directories: usize,
    /// How often each server is measured for each question.
    pub rounds: usize,
    /// How long each time.
    pub duration: Duration,
    /// How long servers are warmed up, all at once.
    pub warm_up: Duration,
    /// How long each server gets the mix before a measured turn, since the kernel takes pages from a stopped server.
    pub lead: Duration,
    /// Where mount points, configurations and logs are put.
    pub folder: PathBuf,
}

/// Measures, and returns the tables as Markdown.
///
/// # Errors
/// If we are not root, the machine lacks a tool or a control group, or no server can be started.
pub fn run(settings: &DiskSettings) -> Result<String> {
    ensure!(
        getuid().is_root(),
        "only root may bound the memory of a server and throttle a disk: control groups, a loop device and mounts are needed"
    );
    let folder = own_folder(&settings.folder).with_context(|| settings.folder.display().to_string())?;
    let machine = Machine::prepare(Isolation::WhenRoot, settings.cpus)?;
    // Dropped in reverse order: servers first, then their groups.
    let groups = Groups::new()?;
    let content = Content { directories: settings.directories };
    eprintln!("making a disk with {} MB", content.bytes() / 1_000_000);
    let image = Image::make(content.bytes() * 11 / 10 + IMAGE_SPARE_BYTES, &folder.join("image"), |root| {
        content.write(root)
    })?;

    let mut contestants = Vec::new();
    for entry in entries(settings)? {
        match contestant(entry, settings, &machine, &groups, &image, &folder) {
            Ok(contestant) => contestants.push(contestant),
            Err(error) => eprintln!("left out: {error:#}"),
        }
    }
    ensure!(!contestants.is_empty(), "no server could be started");

    eprintln!("warming up {} servers", contestants.len());
    together(&contestants, |contestant| {
        let _ = Throughput::measure(contestant, &machine, content, 0, settings.warm_up);
    });
    let throughput = in_turn(&contestants, settings.rounds, |contestant, round| {
        // Another part of the mix, so that it does not load just the measured files.
        let _ =
            Throughput::measure(contestant, &machine, content, settings.rounds + round + 1, settings.lead);
        Throughput::measure(contestant, &machine, content, round + 1, settings.duration)
    });
    together(&contestants, |contestant| {
        let _ = Latency::measure(contestant, content, 0, settings.duration);
    });
    let latency = in_turn(&contestants, settings.rounds, |contestant, round| {
        Latency::measure(contestant, content, round + 1, settings.duration)
    });

    let conditions = Conditions {
        machine: machine.description(),
        memory_mib: settings.memory_mib,
        disk_mb_per_s: settings.disk_mb_per_s,
        read_ahead_kb: settings.read_ahead_kb,
        content_bytes: content.bytes(),
        seconds: settings.duration.as_secs_f64(),
    };
    let mut text = table::markdown(&conditions, &throughput, &latency);
    for contestant in &contestants {
        text +=
            &table::after(&contestant.server.name, contestant.out_of_memory(), &chosen(contestant, settings));
    }
    Ok(text)
}

/// The contenders; the first is the reference.
fn entries(settings: &DiskSettings) -> Result<Vec<Entry>> {
    let nginx = Entry::other("nginx").filter(|_| settings.nginx);
    let threads = nginx.clone().map(Entry::with_file_threads);
    let architectures = match &settings.architectures[..] {
        [] => all_architectures(&settings.baton)?,
        chosen => chosen.to_vec(),
    };
    let baton = architectures
        .iter()
        .map(|architecture| Entry::baton(&settings.baton, architecture).settings(&settings.baton_settings));
    Ok(nginx.into_iter().chain(threads).chain(baton).collect())
}

/// The first words of the lines of `baton architectures`.
fn all_architectures(baton: &Path) -> Result<Vec<String>> {
    let output = Command::new(baton).arg("architectures").output();
    let output = output.with_context(|| format!("cannot run {} architectures", baton.display()))?;
    ensure!(output.status.success(), "{} architectures failed", baton.display());
    let list = String::from_utf8(output.stdout)?;
    Ok(list.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}

fn contestant(
    entry: Entry,
    settings: &DiskSettings,
    machine: &Machine,
    groups: &Groups,
    image: &Image,
    folder: &Path,
) -> Result<Contestant> {
    let name = entry.name.replace(' ', "-");
    let volume = image.mount(&folder.join(format!("{name}-root")), settings.read_ahead_kb)?;
    let bounds = Bounds {
        memory_bytes: settings.memory_mib << 20,
        device: volume.device,
        cpus: None,
        read_bytes_per_s: (settings.disk_mb_per_s * 1e6) as u64,
    };
    let groups = groups.make(&name, &bounds)?;
    let server = Running::start(&entry.in_groups(groups.clone()), machine, folder, &volume.folder)
        .with_context(|| name.clone())?;
    Ok(Contestant { server, volume, groups, control: folder.join(name).join("control") })
}

/// All at once, as nothing is measured; then stops them.
fn together(contestants: &[Contestant], task: impl Fn(&Contestant) + Sync) {
    thread::scope(|scope| {
        for contestant in contestants {
            let task = &task;
            scope.spawn(move || {
                contestant.server.resume();
                task(contestant);
                contestant.server.pause();
            });
        }
    });
}

/// Rounds of turns in a rotating order. A turn in which other processes took much of the CPU is repeated once.
fn in_turn<F: turn::Figures>(
    contestants: &[Contestant],
    rounds: usize,
    measure: impl Fn(&Contestant, usize) -> Result<F>,
) -> Vec<Turn<F>> {
    let mut turns = Vec::new();
    for round in 0..rounds {
        for position in 0..contestants.len() {
            let contestant = &contestants[(round + position) % contestants.len()];
            contestant.server.resume();
            let mut outcome = measure(contestant, round);
            if outcome.as_ref().is_ok_and(turn::Figures::is_disturbed) {
                outcome = measure(contestant, round);
            }
            contestant.server.pause();
            let turn = Turn {
                server: contestant.server.name.clone(),
                round,
                outcome: outcome.map_err(|error| format!("{error:#}")),
            };
            eprintln!("{turn}");
            turns.push(turn);
        }
    }
    turns.sort_by_key(|turn| {
        (turn.round, contestants.iter().position(|contestant| contestant.server.name == turn.server))
    });
    turns
}

/// The choices of a Baton that tunes itself, from its status.
fn chosen(contestant: &Contestant, settings: &DiskSettings) -> Vec<Value> {
    contestant.server.resume();
    let said = Command::new(&settings.baton)
        .args(["ctl", "--json", "--control"])
        .arg(&contestant.control)
        .arg("status")
        .output();
    contestant.server.pause();
    let status: Value =
        said.ok().and_then(|output| serde_json::from_slice(&output.stdout).ok()).unwrap_or_default();
    let mut found = Vec::new();
    find(&status, "tuning", &mut found);
    found
}

/// The values of all members with this name that say something.
fn find(value: &Value, name: &str, found: &mut Vec<Value>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                if key == name && !member.is_null() {
                    found.push(member.clone());
                } else {
                    find(member, name, found);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| find(item, name, found)),
        _ => {}
    }
}

/// The overhead of a file system.
const IMAGE_SPARE_BYTES: u64 = 32 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_chosen_is_found_at_any_depth() {
        let status = serde_json::json!({
            "workers": [{ "loops": { "loop": { "tuning": { "a": 1 } } } }, { "tuning": null }, { "tuning": { "a": 2 } }]
        });
        let mut found = Vec::new();
        find(&status, "tuning", &mut found);
        assert_eq!(found, [serde_json::json!({ "a": 1 }), serde_json::json!({ "a": 2 })]);
    }
}
