//! What a request costs the server in instructions of its own: exactly, and the same on a busy machine.
//!
//! A worker is stopped after each instruction ([`stepper`](super::stepper)). The figure is the median over nine requests: what
//! the loop does once a second is in few of them.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, ensure};

use super::loads::Attempt;
use super::stepper::Stepper;
use super::turn::Values;
use crate::load::{LoadRequest, ask};
use crate::quantity::Quantity;
use crate::servers::RunningServer;

/// The usual number of instructions from one request's arrival to the next, of so many, and of looks at a clock.
pub(super) fn costs(attempt: Attempt<'_>, path: &str, close: bool) -> Result<Values> {
    let server = &attempt.contestant.server;
    let requests_max = attempt.turn.effort.responses(REQUESTS);
    let page = LoadRequest::page(path, None);
    let mut kept = TcpStream::connect(server.address)?;
    let mut request = || if close { ask_once(server, path) } else { ask(&mut kept, server.address, &page) };
    for _ in 0..WARM_UP {
        request()?;
    }
    let worker = server.worker().context("the server has no worker")?;
    let stepper = Stepper::follow(worker);
    let mut counts = Vec::new();
    // The first are on the way from the wait in which the worker was found.
    for _ in 0..requests_max + 2 {
        request()?;
        counts.push(stepper.counts_at_rest()?);
    }
    stepper.end(request)?;
    let usual = |which: usize| {
        let costs = counts.windows(2).skip(1).map(|pair| pair[1][which] - pair[0][which]);
        let mut costs: Vec<u64> = costs.collect();
        costs.sort_unstable();
        costs[costs.len() / 2] as f64
    };
    Ok([(Quantity::Instructions, usual(0)), (Quantity::ClockLooks, usual(1))].into())
}

/// One request on a connection of its own.
fn ask_once(server: &RunningServer, path: &str) -> Result<()> {
    let mut stream = TcpStream::connect(server.address)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response)?;
    ensure!(response.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&response));
    Ok(())
}

/// Requests that are not stepped through: a file is hot after eight.
const WARM_UP: usize = 40;

/// Of which the median is taken.
const REQUESTS: u64 = 9;
