//! How soon a cache with a folder serves what it had before a crash, and whether that is right.
//!
//! The cache is filled over sockets, and all processes are killed. The server is started again; what counts from then on is
//! the time until it answers, and until it has found everything. A sample of the objects is compared with what the origin
//! has sent: a hit with other bytes is an error.

mod front;
mod origin;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::ground::{Finding, Ground, Keep};
use crate::load::{Load, LoadRequest, LoadSettings, RequestList};
use crate::quantity::Quantity;
use crate::rig::{loopback, own_folder};
use front::Front;
use origin::{Origin, body_of};

/// What to measure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestartSettings {
    /// How many objects are stored.
    objects: u64,
    /// Length of each body.
    bytes: usize,
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
        let values = measure(settings, ground).map_err(|error| format!("{error:#}"));
        keep(Finding { load: settings.objects.to_string(), contender: "baton".to_owned(), round, values })?;
    }
    Ok(())
}

fn measure(settings: &RestartSettings, ground: Ground<'_>) -> Result<BTreeMap<Quantity, f64>> {
    let folder = own_folder(ground.folder).with_context(|| ground.folder.display().to_string())?;
    let program = ground.baton.canonicalize().with_context(|| ground.baton.display().to_string())?;
    let cache = folder.join("cache");
    if cache.exists() {
        fs::remove_dir_all(&cache)?;
    }
    let origin = Origin::start(settings.bytes)?;
    let address = TcpListener::bind(loopback(0))?.local_addr()?;
    let configuration = CONFIGURATION
        .replace("{objects}", &settings.objects.to_string())
        .replace("{control}", &folder.join("control").display().to_string())
        .replace("{cache}", &cache.display().to_string())
        .replace("{address}", &address.to_string())
        .replace("{origin}", &origin.address.to_string());

    let mut front = Front::start(&program, &folder, &configuration)?;
    front.wait_until_it_listens(address)?;
    fill(settings, address)?;
    front.wait_for_disk(|disk| disk["queue_bytes"] == 0)?;
    front.kill();
    wait_until_free(address)?;

    let mut front = Front::start(&program, &folder, &configuration)?;
    front.wait_until_it_listens(address)?;
    let answers = front.started.elapsed();
    let status = front.wait_for_disk(|disk| disk["recovered"] == true)?;
    let found = front.started.elapsed();
    let hits = compare(settings, address, &origin)?;

    Ok([
        (Quantity::AnswersS, answers.as_secs_f64()),
        (Quantity::FoundS, found.as_secs_f64()),
        (Quantity::FoundShare, status["objects"].as_f64().unwrap_or_default() / settings.objects as f64),
        (Quantity::HitShare, hits as f64 / settings.sample.min(settings.objects) as f64),
    ]
    .into())
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

fn fill(settings: &RestartSettings, address: SocketAddr) -> Result<()> {
    let load = LoadSettings {
        address,
        connections: 64,
        connection_per_request: false,
        idle_connections: 0,
        duration: FILL_MAX,
        requests_max: Some(settings.objects),
        requests_per_second: None,
        // The origin runs on the same CPUs.
        sleep: true,
        verify: false,
    };
    let length = Some(settings.bytes as u64);
    let requests = (0..settings.objects).map(|number| LoadRequest::page(path_of(number), length));
    let report = Load::connect(&load, RequestList::new(address, false, requests))?.run()?;
    let failure = report.first_failure.clone().unwrap_or_default();
    ensure!(report.requests == settings.objects && report.failed() == 0, "filling the cache: {failure}");
    Ok(())
}

/// Asks for objects that lie evenly among all. Returns how many the origin was not asked for.
fn compare(settings: &RestartSettings, address: SocketAddr, origin: &Origin) -> Result<u64> {
    let asked_before = origin.asked();
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let sample = settings.sample.min(settings.objects);
    for number in 0..sample {
        let path = path_of(number * (settings.objects / sample));
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.get_mut().write_all(request.as_bytes())?;
        let body = response(&mut stream)?;
        ensure!(body == body_of(&path, settings.bytes), "{path} has other bytes than the origin sent");
    }
    Ok(sample - (origin.asked() - asked_before).min(sample))
}

/// The body of a response with `Content-Length`.
fn response(stream: &mut impl BufRead) -> Result<Vec<u8>> {
    let (mut line, mut length) = (String::new(), 0);
    while line != "\r\n" {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            bail!("the server has closed the connection");
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}

fn path_of(number: u64) -> String {
    format!("/object/{number}")
}

const CONFIGURATION: &str = r#"
[server]
control_socket = "{control}"
[log]
access = "off"
[shared_cache]
memory_bytes_max = "256 MiB"
folder = "{cache}"
disk_bytes_max = "32 GiB"
objects_max = {objects}
[[site]]
listen = "{address}"
[[site.route]]
path = "/object"
proxy = "http://{origin}/object"
cache = true
"#;

/// Enough to see that they are found again.
const TINY_OBJECTS: u64 = 1000;
const FREE_MAX: Duration = Duration::from_secs(10);
const FILL_MAX: Duration = Duration::from_secs(3600);
