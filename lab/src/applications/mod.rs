//! Compares applications behind servers: the same program behind each, by every transport.
//!
//! Server and application share a CPU and the client has another, so throughput shows what both cost together. Every
//! server has a pool of its own: idle processes cost nothing, and kept connections would block each other.

mod contenders;
mod php;
mod table;
mod task;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::comparison::{Contender, Rounds};
use crate::files;
use crate::rig::{Isolation, Machine, compile_ad_rotation, drop_in, own_folder};
pub use contenders::Programs;
pub(crate) use contenders::{AdRotation, ServerSetup};
use php::PhpSetup;
pub(crate) use task::PROCESSES;
pub use task::Response;

/// What to compare and how long.
#[derive(Clone, Debug)]
pub struct ApplicationsSettings {
    /// Executables and libraries of this project.
    pub programs: Programs,
    /// The library that php-fpm is started with; left out without it.
    pub preload: Option<PathBuf>,
    /// The PHP extension; left out without it.
    pub php_extension: Option<PathBuf>,
    /// The kinds of response.
    pub responses: Vec<Response>,
    /// How often each server is measured for each.
    pub rounds: usize,
    /// How long each time.
    pub duration: Duration,
    /// Where programs, configurations and logs are put.
    pub folder: PathBuf,
}

/// Measures, and returns the tables as Markdown.
///
/// # Errors
/// If there are fewer than two CPUs, a program is missing, or no server can be started.
pub fn run(settings: &ApplicationsSettings) -> Result<String> {
    let folder = own_folder(&settings.folder).with_context(|| settings.folder.display().to_string())?;
    let machine = Machine::prepare(Isolation::WhenRoot, 1)?;
    let root = folder.join("root");
    let rounds = Rounds { count: settings.rounds, duration: settings.duration, sleep: false };
    let (php, c): (Vec<Response>, Vec<Response>) =
        settings.responses.iter().copied().partition(|response| response.is_php());
    let mut cells = Vec::new();
    for (responses, start) in [
        (c, start_c as fn(&ApplicationsSettings, &Machine, &Path, &Path) -> Result<Vec<Contender>>),
        (php, start_php),
    ] {
        if responses.is_empty() {
            continue;
        }
        let contenders = start(settings, &machine, &folder, &root)?;
        ensure!(!contenders.is_empty(), "no server could be started");
        for response in responses {
            rounds.measure(response, &contenders, &machine, |cell| {
                eprintln!("{cell}");
                cells.push(cell);
                Ok(())
            })?;
        }
    }
    Ok(table::markdown(&cells, &machine.description()))
}

fn start_c(
    settings: &ApplicationsSettings,
    machine: &Machine,
    folder: &Path,
    root: &Path,
) -> Result<Vec<Contender>> {
    let executable = compile_ad_rotation(folder)?;
    let library = drop_in(&settings.programs.libfcgi, folder)?;
    files::write_one(root, NAMED_FILE, 1 << 20)?;
    let pool = AdRotation {
        programs: &settings.programs,
        executable: &executable,
        library: &library,
        processes: PROCESSES,
        root,
        named_file: NAMED_FILE,
    };
    Ok(started(ServerSetup::ALL.iter().map(|way| pool.start(*way, machine, folder))))
}

fn start_php(
    settings: &ApplicationsSettings,
    machine: &Machine,
    folder: &Path,
    root: &Path,
) -> Result<Vec<Contender>> {
    for bytes in [Response::Php60k, Response::Php1m].map(Response::bytes) {
        files::write_one(root, &format!("{}k.html", bytes >> 10), bytes)?;
    }
    fs::write(root.join("file.php"), include_str!("../../conf/file.php"))?;
    let mut ways = vec![PhpSetup::Nginx, PhpSetup::NginxKept, PhpSetup::Baton];
    ways.extend(settings.preload.clone().map(PhpSetup::Preload));
    ways.extend(settings.php_extension.clone().map(PhpSetup::Extension));
    if let (Some(library), Some(extension)) = (settings.preload.clone(), settings.php_extension.clone()) {
        ways.push(PhpSetup::Both { library, extension });
    }
    let baton = &settings.programs.baton;
    Ok(started(ways.iter().map(|way| way.start(baton, PROCESSES, root, machine, folder))))
}

/// The contenders that could be started; errors of the others are printed.
fn started(contenders: impl Iterator<Item = Result<Contender>>) -> Vec<Contender> {
    contenders
        .filter_map(|contender| match contender {
            Ok(contender) => Some(contender),
            Err(error) => {
                eprintln!("left out: {error:#}");
                None
            }
        })
        .collect()
}
const NAMED_FILE: &str = "1m.html";
