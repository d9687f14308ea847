//! The requests: to one endpoint after the other, until one answers.

use std::io::{BufRead as _, BufReader, Read as _};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_https_client::http::Request;
use baton_https_client::{Authorities, BodyReader, Client, ClientSettings, Error};
use baton_report::OperatorError;
use serde_json::{Value, json};

use super::wire::{Key, Prefix, malformed, reason, revision, signed};
use super::{Entry, Snapshot, WatchLine};
use crate::failure::Failure;
use crate::settings::{Etcd, EtcdUser};

/// A client of one cluster of etcd.
#[derive(Debug)]
pub struct Api {
    client: Client,
    endpoints: Vec<String>,
    /// The endpoint that has answered last.
    current: AtomicUsize,
    prefix: Prefix,
    login: Option<EtcdUser>,
    /// By which etcd knows the user; `None`: not logged in.
    token: Mutex<Option<String>>,
}

/// What has changed in etcd, line by line, as it happens.
pub(crate) struct Watch {
    lines: BufReader<BodyReader<'static>>,
    prefix: Prefix,
}

impl Api {
    /// A client by these settings.
    ///
    /// # Errors
    /// If the certificates of authorities cannot be read.
    pub fn new(settings: &Etcd) -> Result<Self, OperatorError> {
        let is_tls = settings.endpoints.iter().any(|endpoint| endpoint.starts_with("https:"));
        let client = Client::new(&ClientSettings {
            authorities: is_tls.then_some(Authorities {
                file: settings.ca.as_deref(),
                what: "etcd's authorities",
                remedy: "name a PEM file that the workers' user may read: `ca` in `cluster.etcd`",
            }),
            https_only: false,
            redirects_max: 0,
            uses_proxy: false,
            connect_timeout: Some(CONNECT_TIMEOUT),
            timeout: REQUEST_TIMEOUT,
        })?;
        Ok(Self {
            client,
            endpoints: settings.endpoints.clone(),
            current: AtomicUsize::new(0),
            prefix: Prefix::new(&settings.prefix),
            login: settings.login.clone(),
            token: Mutex::default(),
        })
    }

    /// The endpoint that has answered last.
    pub fn endpoint(&self) -> &str {
        &self.endpoints[self.current.load(Relaxed) % self.endpoints.len()]
    }

    /// All keys below the prefix, as a majority of etcd's members has them.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn range(&self) -> Result<Snapshot, Failure> {
        self.prefix.snapshot(&self.call("kv/range", &self.prefix.range(KEYS_MAX))?)
    }

    /// One key below the prefix.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn get(&self, name: &str) -> Result<Option<Entry>, Failure> {
        let answer = self.call("kv/range", &self.key(name).range())?;
        Ok(self.prefix.snapshot(&answer)?.entries.into_iter().next())
    }

    /// Writes a key under a lease. Returns the revision.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn put(&self, name: &str, value: &[u8], lease: i64) -> Result<i64, Failure> {
        revision(&self.call("kv/put", &self.key(name).put(value, lease))?)
    }

    /// Replaces a key if it was last written at that revision (0: it is not there), under the lease that it has; `None` deletes
    /// it. Returns the revision at which it is; `None`: it was not replaced.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn replace(
        &self,
        name: &str,
        mod_revision: i64,
        value: Option<&[u8]>,
    ) -> Result<Option<i64>, Failure> {
        let answer = self.call("kv/txn", &self.key(name).replace(mod_revision, value))?;
        (answer["succeeded"] == true).then(|| revision(&answer)).transpose()
    }

    /// Begins a lease, of so many seconds. Returns its number.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn grant(&self, ttl_s: u64) -> Result<i64, Failure> {
        match signed(&self.call("lease/grant", &json!({ "TTL": ttl_s.to_string() }))?["ID"]) {
            0 => Err(malformed("a lease without a number")),
            lease => Ok(lease),
        }
    }

    /// Renews a lease. Returns whether it is still there.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn keep_alive(&self, lease: i64) -> Result<bool, Failure> {
        let answer = self.call("lease/keepalive", &json!({ "ID": lease.to_string() }))?;
        Ok(signed(&answer["result"]["TTL"]) > 0)
    }

    /// Ends a lease, and with it what was written under it.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn revoke(&self, lease: i64) -> Result<(), Failure> {
        self.call("lease/revoke", &json!({ "ID": lease.to_string() })).map(drop)
    }

    /// Tells what happens below the prefix from that revision on. `idle`: how long it may be silent.
    ///
    /// # Errors
    /// See [`Failure`].
    pub(crate) fn watch(&self, from: i64, idle: Duration) -> Result<Watch, Failure> {
        let body = self.prefix.watch(from);
        let response = self.on_some_endpoint(|endpoint| {
            let body = body.to_string();
            let request = self.request(endpoint, "watch", &body);
            let response = request.and_then(|request| self.client.follow(request, idle)).map_err(away)?;
            match response.status().as_u16() {
                200 => Ok(response),
                status => Err(Failure::Refused(status, "no watch".into())),
            }
        })?;
        Ok(Watch { lines: BufReader::new(response.into_body()), prefix: self.prefix.clone() })
    }

    fn key(&self, name: &str) -> Key {
        self.prefix.key(name)
    }

    fn call(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.on_some_endpoint(|endpoint| self.call_at(endpoint, path, body))
    }

    /// Tries the endpoint that has answered last, then the others.
    fn on_some_endpoint<R>(&self, call: impl Fn(&str) -> Result<R, Failure>) -> Result<R, Failure> {
        let first = self.current.load(Relaxed);
        let mut away = Vec::new();
        for step in 0..self.endpoints.len() {
            let at = (first + step) % self.endpoints.len();
            let endpoint = &self.endpoints[at];
            match call(endpoint) {
                Err(failure) if failure.may_pass() => away.push(match failure {
                    Failure::Away(why) => format!("{endpoint}: {why}"),
                    other => format!("{endpoint}: {other}"),
                }),
                answer => {
                    self.current.store(at, Relaxed);
                    return answer;
                }
            }
        }
        Err(Failure::Away(away.join("; ")))
    }

    fn call_at(&self, endpoint: &str, path: &str, body: &Value) -> Result<Value, Failure> {
        let answer = self.answer(endpoint, path, body)?;
        match self.judge(answer) {
            // The token was of another time.
            Err(Failure::Refused(status, why)) if self.login.is_some() && is_about_token(status, &why) => {
                *self.token() = None;
                self.log_in(endpoint)?;
                self.judge(self.answer(endpoint, path, body)?)
            }
            judged => judged,
        }
    }

    fn answer(&self, endpoint: &str, path: &str, body: &Value) -> Result<(u16, Vec<u8>), Failure> {
        if self.login.is_some() && self.token().is_none() {
            self.log_in(endpoint)?;
        }
        self.post(endpoint, path, body)
    }

    /// By status: versions of etcd differ in the bodies of errors.
    fn judge(&self, (status, bytes): (u16, Vec<u8>)) -> Result<Value, Failure> {
        let read = serde_json::from_slice(&bytes);
        if status == 200 {
            return read.map_err(malformed);
        }
        let why = read.map_or_else(|_| "no reason given".into(), |error: Value| reason(&error));
        Err(Failure::Refused(status, why))
    }

    fn log_in(&self, endpoint: &str) -> Result<(), Failure> {
        let Some(EtcdUser { user, password }) = &self.login else { return Ok(()) };
        let body = json!({ "name": user, "password": password });
        let answer = self.judge(self.post(endpoint, "auth/authenticate", &body)?)?;
        let token = answer["token"].as_str().ok_or_else(|| malformed("no token for the user"))?;
        *self.token() = Some(token.to_owned());
        Ok(())
    }

    /// Status and body of an answer.
    fn post(&self, endpoint: &str, path: &str, body: &Value) -> Result<(u16, Vec<u8>), Failure> {
        let body = body.to_string();
        let request = self.request(endpoint, path, &body);
        let answer = request.and_then(|request| self.client.ask(request, ANSWER_BYTES_MAX)).map_err(away)?;
        Ok((answer.status().as_u16(), answer.into_body()))
    }

    fn request<'b>(&self, endpoint: &str, path: &str, body: &'b str) -> Result<Request<&'b [u8]>, Error> {
        let mut request = Request::post(format!("{}/v3/{path}", endpoint.trim_end_matches('/')));
        if let Some(token) = &*self.token() {
            request = request.header("Authorization", token);
        }
        Ok(request.header("Content-Type", "application/json").body(body.as_bytes())?)
    }

    fn token(&self) -> MutexGuard<'_, Option<String>> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// Waits for the next line. `None`: the connection has ended, or was silent for too long.
    ///
    /// # Errors
    /// See [`Failure`].
    pub(crate) fn next(&mut self) -> Result<Option<WatchLine>, Failure> {
        loop {
            let mut line = Vec::new();
            match (&mut self.lines).take(ANSWER_BYTES_MAX).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return Ok(None),
                Ok(_) if line.trim_ascii().is_empty() => {}
                Ok(_) => return self.prefix.watched(&line).map(Some),
            }
        }
    }
}

/// RFC 7235's 401, or what etcd says when a token has expired or was made before a restart.
fn is_about_token(status: u16, why: &str) -> bool {
    status == 401 || why.contains("invalid auth token") || why.contains("user name is empty")
}

fn away(error: Error) -> Failure {
    Failure::Away(error.to_string())
}

/// An endpoint that does not answer must not cost a lease: of ten seconds usually, renewed at a third.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Keys below the prefix that are read at most: those of nodes, and of orders about nodes that are gone.
const KEYS_MAX: u64 = 1_000;

/// [`KEYS_MAX`] keys with the longest values that count; a request of etcd has 1.5 MiB at most.
const ANSWER_BYTES_MAX: u64 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_authorities_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let settings = Etcd {
            endpoints: vec!["https://127.0.0.1:1".into()],
            prefix: "/b/".into(),
            ttl_s: 10,
            hold_s: 60,
            ca: Some(file.path().to_owned()),
            login: None,
            register: None,
        };
        let told = Api::new(&settings).unwrap_err().to_string();
        let name = file.path().display();
        let begin = format!("cannot read etcd's authorities from {name}: there is none in it\n");
        assert!(told.starts_with(&begin), "{told}");
    }
}
