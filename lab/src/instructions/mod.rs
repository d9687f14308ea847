//! Counts what a request costs the server in instructions of its own: exactly, and the same on a busy machine.
//!
//! A worker under `sped` is stopped after each instruction ([`stepper`]). The figure is the median over nine requests:
//! what the loop does once a second is in few of them.

mod stepper;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::markdown;
use crate::relay::{Origin, OriginAddress, OriginSocket};
use crate::rig::{Entry, Isolation, Machine, Running, own_folder};
use stepper::Stepper;

/// What to count.
#[derive(Clone, Debug)]
pub struct InstructionsSettings {
    /// Commands of this project, a column of the table each.
    pub batons: Vec<PathBuf>,
    /// More settings for all of them, as `section.key=value`.
    pub baton_settings: Vec<String>,
    /// Where the file, configurations and logs are put; kept for the next run.
    pub folder: PathBuf,
}

/// A kind of request.
#[derive(Clone, Copy, Debug)]
struct Asked {
    what: &'static str,
    path: &'static str,
    /// Whether each request has a connection of its own.
    closes: bool,
}

/// Counts, and returns the table as Markdown.
///
/// # Errors
/// If the folder cannot be written, a server cannot be started, or the system does not let this user look into its worker.
pub fn run(settings: &InstructionsSettings) -> Result<String> {
    let folder = own_folder(&settings.folder).with_context(|| settings.folder.display().to_string())?;
    let machine = Machine::prepare(Isolation::None, 1)?;
    let root = folder.join("root");
    fs::create_dir_all(&root)?;
    fs::write(root.join(FILE.trim_start_matches('/')), [b'f'; BYTES])?;
    let origin = Origin::start(OriginSocket::Tcp, BYTES as u64)?;
    let OriginAddress::Tcp(origin) = origin.address else { unreachable!("it was asked for TCP") };
    let counted: Vec<Vec<String>> = settings
        .batons
        .iter()
        .enumerate()
        .map(|(index, baton)| {
            let entry =
                entry(baton, origin, &settings.baton_settings).named(&format!("instructions-{index}"));
            let server = Running::start(&entry, &machine, &folder, &root)?;
            ASKED.iter().map(|asked| Ok(median(*asked, &server)?.to_string())).collect()
        })
        .collect::<Result<_>>()?;
    let mut table = String::new();
    let names: Vec<String> = settings.batons.iter().map(|baton| baton.display().to_string()).collect();
    markdown::begin_table(&mut table, "user instructions of a request", &names);
    for (row, asked) in ASKED.iter().enumerate() {
        let columns: Vec<&String> = counted.iter().map(|column| &column[row]).collect();
        markdown::row(&mut table, asked.what, &columns);
    }
    Ok(table)
}

fn entry(baton: &Path, origin: SocketAddr, more: &[String]) -> Entry {
    let route = format!(
        "site.route=[{{path=\"/pass\", proxy=\"http://{origin}/\"}}, \
         {{path=\"/hit\", proxy=\"http://{origin}/\", cache={{default_s=3600}}}}]"
    );
    // A worker that is stopped all the time would seem to be stuck.
    let settings = [route, "server.watchdog_ms=0".to_owned()];
    Entry::baton(baton, "sped").workers(1).settings(&settings).settings(more)
}

/// The usual number of instructions from one request's arrival to the next.
fn median(asked: Asked, server: &Running) -> Result<u64> {
    let mut client = Asking::new(asked, server.address)?;
    for _ in 0..WARM_UP {
        client.ask()?;
    }
    let worker = server.worker().context("the server has no worker")?;
    let stepper = Stepper::follow(worker)?;
    let mut counts = Vec::new();
    // The first are on the way from the wait in which the worker was found.
    for _ in 0..REQUESTS + 2 {
        client.ask()?;
        counts.push(stepper.count_at_rest()?);
    }
    stepper.end(|| client.ask())?;
    let mut costs: Vec<u64> = counts.windows(2).skip(1).map(|pair| pair[1] - pair[0]).collect();
    costs.sort_unstable();
    Ok(costs[costs.len() / 2])
}

/// A client that asks for one thing again and again.
struct Asking {
    asked: Asked,
    address: SocketAddr,
    kept: TcpStream,
}

impl Asking {
    fn new(asked: Asked, address: SocketAddr) -> Result<Self> {
        Ok(Self { asked, address, kept: TcpStream::connect(address)? })
    }

    /// One request and its response, to the last byte.
    fn ask(&mut self) -> Result<()> {
        let Asked { path, closes, .. } = self.asked;
        let fields = if closes { "Connection: close\r\n" } else { "" };
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
        if closes {
            self.kept = TcpStream::connect(self.address)?;
        }
        self.kept.write_all(request.as_bytes())?;
        let mut response = Vec::new();
        while !is_whole(&response) {
            let mut bytes = [0; 4 * BYTES];
            let count = self.kept.read(&mut bytes)?;
            ensure!(count > 0, "the server has closed: {}", String::from_utf8_lossy(&response));
            response.extend_from_slice(&bytes[..count]);
        }
        ensure!(response.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&response));
        if closes {
            ensure!(self.kept.read(&mut [0])? == 0, "more than a response");
        }
        Ok(())
    }
}

/// Whether a response has its head and a body of the length that all have here.
fn is_whole(response: &[u8]) -> bool {
    let end = memchr::memmem::find(response, b"\r\n\r\n");
    end.is_some_and(|end| response.len() >= end + 4 + BYTES || !response.starts_with(b"HTTP/1.1 200"))
}

const ASKED: [Asked; 4] = [
    Asked { what: "a cached file", path: FILE, closes: false },
    Asked { what: "a cached file, a connection each", path: FILE, closes: true },
    Asked { what: "passed on", path: "/pass/x", closes: false },
    Asked { what: "from the shared cache", path: "/hit/x", closes: false },
];

/// All bodies have this length.
const BYTES: usize = 1 << 10;
const FILE: &str = "/1k.html";

/// Requests that are not stepped through: a file is hot after eight.
const WARM_UP: usize = 40;

/// Of which the median is taken.
const REQUESTS: usize = 9;
