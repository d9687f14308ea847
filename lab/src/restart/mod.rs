//! How soon a cache with a folder serves what it had before a crash, and whether that is right.
//!
//! The cache is filled over sockets, and all processes are killed. The server is started again; what counts from then on is
//! the time until it answers, and until it has found everything. A sample of the objects is compared with what the origin
//! has sent: a hit with other bytes is an error.

mod origin;

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::ground::{Ground, Keep};
use crate::load::{Load, LoadRequest, LoadSettings};
use crate::quantity::Quantity;
use crate::rig::{loopback, own_folder};
use crate::servers::{Ability, RunningServer, ServerKind, ServerPlace, ServerSettings};
use origin::Origin;

/// What to measure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestartSettings {
    /// How many objects are stored.
    objects: u64,
    /// Length of each body.
    bytes: u64,
    /// How many of them are compared afterwards.
    sample: u64,
}

/// Measures each round.
///
/// # Errors
/// If the server cannot be started, a request fails, or a hit has other bytes than the origin sent.
pub(crate) fn run(settings: &RestartSettings, ground: Ground<'_>, keep: Keep<'_>) -> Result<()> {
    ensure!(settings.objects > 0 && settings.sample > 0, "nothing is found again without an object");
    let objects = if ground.is_tiny { settings.objects.min(TINY_OBJECTS) } else { settings.objects };
    let settings = &RestartSettings { objects, ..settings.clone() };
    for round in 0..ground.rounds {
        keep(&settings.objects.to_string(), "baton", round, measure(settings, ground))?;
    }
    Ok(())
}

fn measure(settings: &RestartSettings, ground: Ground<'_>) -> Result<BTreeMap<Quantity, f64>> {
    let folder = own_folder(ground.folder).with_context(|| ground.folder.display().to_string())?;
    let cache = folder.join("cache");
    if cache.exists() {
        fs::remove_dir_all(&cache)?;
    }
    let origin = Origin::start(settings.bytes)?;
    let kind = ServerKind::load(&format!("baton@{}", ground.baton.display()))?;
    let wanted = ServerSettings::needing([Ability::Cache])
        .set("shared_cache.memory_bytes_max", "256 MiB")
        .set("shared_cache.disk_bytes_max", "32 GiB")
        .set("shared_cache.folder", cache.display().to_string())
        .set("shared_cache.objects_max", i64::try_from(settings.objects)?);
    let address = TcpListener::bind(loopback(0))?.local_addr()?;
    let place = ServerPlace {
        address: Some(address),
        origins: vec![origin.address],
        ..ServerPlace::new(&folder.join("server"), &folder)
    };
    let server = kind.start(&wanted, &place)?;
    ask(settings, address, 0..settings.objects).context("filling the cache")?;
    wait_for_disk(&server, |disk| disk["queue_bytes"] == 0)?;
    server.kill();
    drop(server);
    wait_until_free(address)?;

    let started = Instant::now();
    let server = kind.start(&wanted, &place)?;
    let answers = started.elapsed();
    let disk = wait_for_disk(&server, |disk| disk["recovered"] == true)?;
    let found = started.elapsed();
    let hits = compare(settings, address, &origin)?;

    Ok([
        (Quantity::AnswersS, answers.as_secs_f64()),
        (Quantity::FoundS, found.as_secs_f64()),
        (Quantity::FoundShare, disk["objects"].as_f64().unwrap_or_default() / settings.objects as f64),
        (Quantity::HitShare, hits as f64 / settings.sample.min(settings.objects) as f64),
    ]
    .into())
}

/// Waits for values in the status of the cache, which is renewed once a second. Returns the status.
fn wait_for_disk(server: &RunningServer, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
    let limit = Instant::now() + READY_MAX;
    loop {
        let status: Value = serde_json::from_slice(&server.control(&["--json", "status"])?)?;
        if let Some(cache) = with_disk(&status).filter(|cache| is_so(&cache["disk"])) {
            return Ok(cache.clone());
        }
        ensure!(Instant::now() < limit, "waited in vain until the cache is ready");
        sleep(Duration::from_millis(5));
    }
}

/// The first `shared_cache` that has a disk, wherever it is: all loops share one, and counters of sites have the same name.
fn with_disk(value: &Value) -> Option<&Value> {
    match value {
        Value::Object(fields) => {
            let own = fields.get("shared_cache").filter(|cache| cache["disk"].is_object());
            own.or_else(|| fields.values().find_map(with_disk))
        }
        Value::Array(values) => values.iter().find_map(with_disk),
        _ => None,
    }
}

/// The kernel closes the sockets of killed processes behind the one that has killed them.
fn wait_until_free(address: SocketAddr) -> Result<()> {
    let limit = Instant::now() + FREE_MAX;
    while let Err(error) = TcpListener::bind(address) {
        ensure!(Instant::now() < limit, "{address} after the crash: {error}");
        sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Asks for these objects. Each that comes is compared with what the origin sends.
fn ask(settings: &RestartSettings, address: SocketAddr, numbers: impl Iterator<Item = u64>) -> Result<()> {
    let object = |number| LoadRequest::file(format!("/hit/object/{number}"), settings.bytes);
    let requests: Vec<LoadRequest> = numbers.map(object).collect();
    let count = requests.len() as u64;
    let load = LoadSettings {
        connections: 64,
        requests_max: Some(count),
        // The origin runs on the same CPUs.
        sleep: true,
        ..LoadSettings::new(address, FILL_MAX)
    };
    let report = Load::connect(&load, requests)?.run()?.judged()?;
    ensure!(report.requests == count, "only {} of {count} objects came", report.requests);
    Ok(())
}

/// Asks for objects that lie evenly among all. Returns how many the origin was not asked for.
fn compare(settings: &RestartSettings, address: SocketAddr, origin: &Origin) -> Result<u64> {
    let asked_before = origin.asked();
    let sample = settings.sample.min(settings.objects);
    ask(settings, address, (0..sample).map(|number| number * (settings.objects / sample)))?;
    Ok(sample - (origin.asked() - asked_before).min(sample))
}

/// Enough to see that they are found again.
const TINY_OBJECTS: u64 = 1000;
const FREE_MAX: Duration = Duration::from_secs(10);
const READY_MAX: Duration = Duration::from_secs(600);
const FILL_MAX: Duration = Duration::from_secs(3600);
