//! A request that causes a kind of answer, the answer, and what the log says of both.

use std::cell::Cell;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::askers::{Asker, Request};
use crate::common::client::Response;
use crate::common::server::{PATIENCE, Server};
use crate::kinds::Kind;
use crate::site::Stage;

/// An exchange that has ended.
pub(crate) struct Exchange<'s> {
    pub(crate) stage: &'s Stage,
    pub(crate) kind: Kind,
    pub(crate) asker: Asker,
    pub(crate) request: Request,
    /// The trace that the client belongs to.
    pub(crate) trace: String,
    /// The answer to a client that takes gzip.
    pub(crate) response: Response,
    pub(crate) patience: &'s Patience,
}

/// How long the checks of a kind wait for what comes behind an answer.
pub(crate) struct Patience {
    pub(crate) log: Wait,
    pub(crate) coding: Wait,
}

/// What did not come for one client is not waited for with the next.
pub(crate) struct Wait(Cell<Duration>);

impl<'s> Exchange<'s> {
    /// Causes the answer; `None`: what it takes is not installed here.
    pub(crate) fn begin(stage: &'s Stage, kind: Kind, asker: Asker, patience: &'s Patience) -> Option<Self> {
        let request = kind.request(stage)?;
        if kind.is_second() {
            ask(stage, kind, asker, &request, GZIP);
        }
        let (trace, response) = ask(stage, kind, asker, &request, GZIP);
        Some(Self { stage, kind, asker, request, trace, response, patience })
    }

    /// Asks for the same as a client that takes this coding.
    pub(crate) fn again(&self, coding: &str) -> Response {
        ask(self.stage, self.kind, self.asker, &self.request, coding).1
    }

    /// The values of the lines of a field.
    pub(crate) fn values(&self, name: &str) -> Vec<&str> {
        let lines = self.response.fields.iter().filter(|(field, _)| field == name);
        lines.map(|(_, value)| value.as_str()).collect()
    }

    /// The server that has answered.
    pub(crate) fn server(&self) -> &Server {
        self.stage.server(self.kind, self.asker.is_secure)
    }

    /// What an application or an origin has read as `traceparent`.
    pub(crate) fn traceparent(&self) -> String {
        traceparent(&self.trace)
    }

    /// The line of the log with the exchange's trace.
    pub(crate) fn logged(&self) -> Option<Value> {
        let file = self.server().folder().base().join("log");
        self.patience.log.until(|| {
            let text = fs::read_to_string(&file).ok()?;
            let whole = &text[..text.rfind('\n')?];
            let line = whole.lines().find(|line| line.contains(&self.trace))?;
            Some(serde_json::from_str(line).expect("JSON"))
        })
    }
}

impl Patience {
    pub(crate) fn new() -> Self {
        let wait = || Wait(Cell::new(PATIENCE));
        Self { log: wait(), coding: wait() }
    }
}

impl Wait {
    /// Waits for something that comes soon; `None`: it did not.
    pub(crate) fn until<T>(&self, mut event: impl FnMut() -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + self.0.get();
        loop {
            let come = event();
            if come.is_some() {
                return come;
            }
            if Instant::now() >= deadline {
                self.0.set(Duration::ZERO);
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Asks as a page of another origin, in a trace of its own, with an id that the server must not take.
fn ask(stage: &Stage, kind: Kind, asker: Asker, request: &Request, coding: &str) -> (String, Response) {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let trace = format!("{:032x}", NUMBER.fetch_add(1, Ordering::Relaxed));
    let fields = format!(
        "Origin: {ORIGIN}\r\nX-Request-Id: chosen\r\ntraceparent: {}\r\nAccept-Encoding: {coding}\r\n{}",
        traceparent(&trace),
        request.fields
    );
    let response = asker.ask(stage.server(kind, asker.is_secure), &Request { fields, ..request.clone() });
    (trace, response)
}

fn traceparent(trace: &str) -> String {
    format!("00-{trace}-00f067aa0ba902b7-01")
}

/// A page that may read the answers.
pub(crate) const ORIGIN: &str = "https://app.example";

const GZIP: &str = "gzip";
