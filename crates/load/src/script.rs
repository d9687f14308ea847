//! Who asks for what: sessions of requests, with pauses between them.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use super::targets::{LoadRequest, Targets};

/// Sessions of requests. Each client goes through its part of them, over and over.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// The different requests.
    requests: Vec<LoadRequest>,
    /// Of all sessions, one behind the other.
    steps: Vec<ScriptStep>,
    /// Where each session ends in `steps`.
    ends: Vec<u32>,
    /// The site's name, for servers that have several.
    host: Option<String>,
}

/// One request of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptStep {
    /// Number of the request.
    pub request: u32,
    /// How long the client waits before it, in milliseconds.
    pub pause_ms: u32,
}

impl Script {
    /// Sessions of these requests; there are none yet.
    pub fn new(requests: Vec<LoadRequest>) -> Self {
        Self { requests, steps: Vec::new(), ends: Vec::new(), host: None }
    }

    /// A session for each of these requests, in this order.
    pub(super) fn of_single_requests(requests: Vec<LoadRequest>) -> Self {
        let mut script = Self::new(requests);
        for request in 0..script.requests.len() as u32 {
            script.push([ScriptStep { request, pause_ms: 0 }]);
        }
        script
    }

    /// One more session. One without requests is left out.
    ///
    /// # Panics
    /// If a step names a request that is not there.
    pub fn push(&mut self, session: impl IntoIterator<Item = ScriptStep>) {
        let begin = self.steps.len();
        self.steps.extend(session);
        assert!(self.steps[begin..].iter().all(|step| (step.request as usize) < self.requests.len()));
        if self.steps.len() > begin {
            self.ends.push(self.steps.len() as u32);
        }
    }

    /// The different requests.
    pub fn requests(&self) -> &[LoadRequest] {
        &self.requests
    }

    /// The steps of all sessions, one behind the other.
    pub fn steps(&self) -> &[ScriptStep] {
        &self.steps
    }

    /// How many sessions there are.
    pub fn session_count(&self) -> usize {
        self.ends.len()
    }

    /// The steps of a session.
    pub fn session(&self, number: usize) -> &[ScriptStep] {
        &self.steps[self.range(number)]
    }

    /// Whether this step is the first of a session.
    pub(super) fn begins_session(&self, step: usize) -> bool {
        step == 0 || self.ends.binary_search(&(step as u32)).is_ok()
    }

    /// Requests of a session in the mean.
    pub fn mean_session(&self) -> f64 {
        self.steps.len() as f64 / self.ends.len().max(1) as f64
    }

    /// All pauses this many times as long.
    #[must_use]
    pub fn with_pauses(mut self, factor: f64) -> Self {
        for step in &mut self.steps {
            step.pause_ms = (f64::from(step.pause_ms) * factor) as u32;
        }
        self
    }

    /// The site's name, as clients give it in `Host`. Without one they give the server's address.
    #[must_use]
    pub fn with_host(self, host: impl Into<String>) -> Self {
        Self { host: Some(host.into()), ..self }
    }

    pub(super) fn targets(&self, address: SocketAddr) -> Targets {
        let host = self.host.clone().unwrap_or_else(|| address.to_string());
        Targets::new(&host, false, self.requests.iter().cloned())
    }

    pub(super) fn range(&self, session: usize) -> Range<usize> {
        let begin = session.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        begin..self.ends[session] as usize
    }
}

impl ScriptStep {
    /// How long the client waits before it.
    pub fn pause(self) -> Duration {
        Duration::from_millis(self.pause_ms.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_keep_their_steps() {
        let mut script = Script::new(vec![LoadRequest::page("/a", None), LoadRequest::page("/b", None)]);
        let step = |request, pause_ms| ScriptStep { request, pause_ms };
        script.push([step(0, 0), step(1, 300)]);
        script.push([]);
        script.push([step(1, 0)]);
        assert_eq!((script.session_count(), script.mean_session()), (2, 1.5));
        assert_eq!(script.session(0), [step(0, 0), step(1, 300)]);
        assert_eq!(script.session(1), [step(1, 0)]);
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        let named = |script: &Script| String::from_utf8(script.targets(address).bytes(0).to_vec()).unwrap();
        assert!(named(&script).contains("\r\nHost: 127.0.0.1:80\r\n"));
        assert!(named(&script.clone().with_host("site.example")).contains("\r\nHost: site.example\r\n"));
        assert_eq!(script.with_pauses(0.5).session(0)[1].pause(), Duration::from_millis(150));
    }
}
