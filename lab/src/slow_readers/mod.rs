//! Slow readers: whether a thousand clients that take a kilobyte a second hold up an application with eight processes.
//!
//! Fast clients send requests all the time: alone, while the slow ones arrive, and when all of them read. The network
//! has packets of 1,500 bytes: with the loopback device's 64 KiB a socket buffer would take whole responses.

mod crowd;

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::applications::{AdRotation, PROCESSES, Programs, ServerSetup};
use crate::comparison::{Cell, CellLoad, Contender, Measured, Sum, Task};
use crate::files;
use crate::load::LoadRequest;
use crate::markdown::{begin_table, failed_row, number, row, spread};
use crate::rig::{Isolation, Machine, compile_ad_rotation, drop_in, own_folder};
use crowd::Crowd;

/// What to measure and how long.
#[derive(Clone, Debug)]
pub struct SlowReadersSettings {
    /// Executables and libraries of this project.
    pub programs: Programs,
    /// How many clients read slowly.
    pub readers: usize,
    /// How many of them come in a second.
    pub readers_per_second: f64,
    /// Length of the response that they read.
    pub slow_bytes: u64,
    /// How often each server is measured.
    pub rounds: usize,
    /// Duration of the fast clients' load, alone and beside the slow ones.
    pub duration: Duration,
    /// Where programs, configurations and logs are put.
    pub folder: PathBuf,
}

/// When the fast clients ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Moment {
    Alone,
    WhileTheyCome,
    Beside,
}

/// Measures, and returns the table as Markdown.
///
/// # Errors
/// If we are not root, a program is missing, or no server can be started.
pub fn run(settings: &SlowReadersSettings) -> Result<String> {
    let folder = own_folder(&settings.folder).with_context(|| settings.folder.display().to_string())?;
    let machine = Machine::prepare(Isolation::WhenRoot, 1)?;
    ensure!(
        machine.is_isolated(),
        "only root may give the loopback device other packets: a network of our own is needed"
    );
    let status = Command::new("ip").args(["link", "set", "lo", "mtu", "1500"]).status()?;
    ensure!(status.success(), "ip link set lo mtu 1500: {status}");
    let (root, executable) = (folder.join("root"), compile_ad_rotation(&folder)?);
    let library = drop_in(&settings.programs.libfcgi, &folder)?;
    files::write_one(&root, "1m.html", 1 << 20)?;
    let pool = AdRotation {
        programs: &settings.programs,
        executable: &executable,
        library: &library,
        processes: PROCESSES,
        root: &root,
        named_file: "1m.html",
    };
    let (mut cells, mut crowds) = (Vec::new(), Vec::new());
    for round in 0..settings.rounds {
        for turn in 0..ServerSetup::ALL.len() {
            // A new server each time, without leftovers of the last crowd.
            let contender =
                pool.start(ServerSetup::ALL[(round + turn) % ServerSetup::ALL.len()], &machine, &folder)?;
            let (measured, crowd) = turn_of(&contender, &machine, settings, round);
            cells.extend(measured);
            eprintln!("{crowd}");
            crowds.push(crowd);
        }
    }
    cells.sort_by_key(|cell| ServerSetup::ALL.iter().position(|way| way.name() == cell.server));
    Ok(markdown(&cells, &crowds, &machine.description(), settings))
}

/// The outcome of one turn's slow clients.
#[derive(Debug)]
struct Fate {
    server: String,
    served: usize,
    refused: usize,
}

fn turn_of(
    contender: &Contender,
    machine: &Machine,
    settings: &SlowReadersSettings,
    round: usize,
) -> (Vec<Cell<Moment>>, Fate) {
    let measure = |task, duration| {
        let load = CellLoad { task, duration, sleep: false, idle_connections: 0 };
        let cell = Cell::measure(contender, machine, &load, round);
        eprintln!("{cell}");
        cell
    };
    let _ = Cell::measure(
        contender,
        machine,
        &CellLoad { task: Moment::Alone, duration: WARM_UP, sleep: false, idle_connections: 0 },
        round,
    );
    let alone = measure(Moment::Alone, settings.duration);
    let path = format!("/app/ad?bytes={}", settings.slow_bytes);
    let crowd = Crowd::gather(contender.server.address, &path, settings.readers, settings.readers_per_second);
    let coming = Duration::from_secs_f64(settings.readers as f64 / settings.readers_per_second);
    let while_they_come = measure(Moment::WhileTheyCome, coming);
    let limit = Instant::now() + SETTLE_MAX;
    while crowd.served() + crowd.refused() < settings.readers && Instant::now() < limit {
        sleep(Duration::from_millis(50));
    }
    let beside = measure(Moment::Beside, settings.duration);
    let fate =
        Fate { server: contender.server.name.clone(), served: crowd.served(), refused: crowd.refused() };
    (vec![alone, while_they_come, beside], fate)
}

fn markdown(
    cells: &[Cell<Moment>],
    crowds: &[Fate],
    machine: &str,
    settings: &SlowReadersSettings,
) -> String {
    let mut text = format!(
        "{machine}, packets of 1,500 bytes\n\nFast clients: {PROCESSES} connections, {} KB; slow ones: {} of 1 KB/s, {} KB each, {} more \
         every second. {} rounds of {} s.\n\n",
        FAST_BYTES >> 10,
        settings.readers,
        settings.slow_bytes >> 10,
        settings.readers_per_second,
        settings.rounds,
        settings.duration.as_secs_f64()
    );
    begin_table(
        &mut text,
        "server",
        &[
            "alone, requests/s",
            "while they come",
            "ratio",
            "beside all",
            "ratio",
            "p99 ms, alone",
            "while they come",
            "beside all",
            "spread",
            "slow ones served",
            "refused",
        ],
    );
    for way in ServerSetup::ALL {
        let name = way.name();
        let of = |moment| Sum::of(cells, moment, &name);
        match (of(Moment::Alone), of(Moment::WhileTheyCome), of(Moment::Beside)) {
            (Sum::Measured(alone), coming, beside) => {
                let fates: Vec<&Fate> = crowds.iter().filter(|fate| fate.server == name).collect();
                let rate = |sum: &Measured<'_>| number(sum.median(|figures| figures.requests_per_second), 0);
                let ratio =
                    |sum: &Measured<'_>| number(sum.ratio(&alone, |figures| figures.requests_per_second), 2);
                let p99 =
                    |sum: &Measured<'_>| number(sum.median(|figures| figures.p99_us.map(|us| us / 1e3)), 2);
                let fields = [
                    rate(&alone),
                    said(&coming, rate),
                    said(&coming, ratio),
                    said(&beside, rate),
                    said(&beside, ratio),
                    p99(&alone),
                    said(&coming, p99),
                    said(&beside, p99),
                    spread(&alone.all(|figures| figures.requests_per_second)),
                    fates.iter().map(|fate| fate.served).min().unwrap_or_default().to_string(),
                    fates.iter().map(|fate| fate.refused).max().unwrap_or_default().to_string(),
                ];
                row(&mut text, &name, &fields);
            }
            (Sum::Failed(why), ..) => failed_row(&mut text, &name, why),
            (Sum::Absent, ..) => {}
        }
    }
    text
}

/// The figures of a phase, or that the fast clients got wrong answers in it.
fn said(sum: &Sum<'_>, field: impl Fn(&Measured<'_>) -> String) -> String {
    match sum {
        Sum::Measured(sum) => field(sum),
        Sum::Failed(_) => "failed".to_owned(),
        Sum::Absent => String::new(),
    }
}

impl Task for Moment {
    fn connections(self) -> usize {
        PROCESSES
    }

    fn requests(self) -> Vec<LoadRequest> {
        vec![LoadRequest::page(format!("/app/ad?bytes={FAST_BYTES}"), Some(FAST_BYTES))]
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Alone => "alone",
            Self::WhileTheyCome => "while slow readers come",
            Self::Beside => "beside all slow readers",
        })
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} slow readers served, {} refused", self.server, self.served, self.refused)
    }
}

const FAST_BYTES: u64 = 32 << 10;
const WARM_UP: Duration = Duration::from_millis(300);
/// How long the last slow readers may wait for the beginning of their responses.
const SETTLE_MAX: Duration = Duration::from_secs(15);
