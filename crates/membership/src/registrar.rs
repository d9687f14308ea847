//! The thread that keeps this host registered as a node, under a lease that it renews.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, SystemTime};

use baton_report::log;

use crate::etcd::Api;
use crate::failure::Failure;
use crate::inputs::Input;
use crate::record::{NodeState, Registration};
use crate::settings::{Etcd, Register};
use crate::view::NODES;

/// The thread, as the first one sees it.
#[derive(Debug)]
pub(crate) struct Registrar {
    name: String,
    wishes: Sender<Wish>,
}

#[derive(Debug)]
enum Wish {
    /// The key is gone, though the lease may be there.
    PutAgain,
    TellLeft(Option<u64>),
    Leave,
    End(Sender<()>),
}

impl Registrar {
    /// Registers this host, and keeps it registered.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(
        api: Arc<Api>,
        etcd: &Etcd,
        register: &Register,
        inputs: Sender<Input>,
    ) -> io::Result<Self> {
        let (wishes, wished) = channel();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let node = Node {
            api,
            key: format!("{NODES}/{}", register.name),
            ttl_s: etcd.ttl_s,
            registration: Registration {
                version: Registration::VERSION,
                to: register.to.clone(),
                weight: register.weight,
                state: NodeState::Up,
                mover: register.mover.clone(),
                public: register.public.clone(),
                epoch: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
                tells_left: register.tells_left,
                left: None,
            },
            lease: None,
            written_at: 0,
        };
        Builder::new().name("lease".into()).spawn(move || node.run(&wished, &inputs))?;
        Ok(Self { name: register.name.clone(), wishes })
    }

    /// The name of this host's node.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Etcd does not have it.
    pub(crate) fn put_again(&self) {
        self.wish(Wish::PutAgain);
    }

    /// What is left while the node is drained.
    pub(crate) fn tell_left(&self, left: Option<u64>) {
        self.wish(Wish::TellLeft(left));
    }

    /// The node is about to end.
    pub(crate) fn leave(&self) {
        self.wish(Wish::Leave);
    }

    /// The node has ended. Returns when etcd knows, or does not answer.
    pub(crate) fn end(&self) {
        let (done, ended) = channel();
        self.wish(Wish::End(done));
        let _ = ended.recv_timeout(END_PATIENCE);
    }

    fn wish(&self, wish: Wish) {
        if self.wishes.send(wish).is_err() {
            log::error("the thread that keeps this host registered has ended");
        }
    }
}

/// The node, in the thread.
struct Node {
    api: Arc<Api>,
    key: String,
    ttl_s: u64,
    registration: Registration,
    lease: Option<i64>,
    /// The revision of what was written last.
    written_at: i64,
}

impl Node {
    fn run(mut self, wishes: &Receiver<Wish>, inputs: &Sender<Input>) {
        let third = Duration::from_millis(self.ttl_s.saturating_mul(1_000) / 3);
        loop {
            let result = self.renew();
            let pause = if result.is_ok() { third } else { third.min(RETRY) };
            if inputs.send(Input::Registered(result)).is_err() {
                return;
            }
            match wishes.recv_timeout(pause) {
                Ok(Wish::PutAgain) => self.lease = None,
                Ok(Wish::TellLeft(left)) => {
                    self.rewrite(Registration { left, ..self.registration.clone() }, "what it has left");
                }
                Ok(Wish::Leave) => {
                    let leaving = Registration { state: NodeState::Leaving, ..self.registration.clone() };
                    self.rewrite(leaving, "that it leaves");
                }
                Ok(Wish::End(done)) => {
                    if let Some(lease) = self.lease
                        && let Err(failure) = self.api.revoke(lease)
                    {
                        let ttl_s = self.ttl_s;
                        log::warning(format_args!(
                            "front-ends see this node for up to {ttl_s} s more: {failure}"
                        ));
                    }
                    let _ = done.send(());
                    return;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Renews the lease, or begins one.
    fn renew(&mut self) -> Result<(), String> {
        let failed = |failure: Failure| failure.to_string();
        if let Some(lease) = self.lease {
            if self.api.keep_alive(lease).map_err(failed)? {
                return Ok(());
            }
            log::warning("the lease of this node has expired: it registers again");
            self.lease = None;
        }
        let known = self.api.get(&self.key).map_err(failed)?;
        let known = known.and_then(|entry| Registration::parse(&entry.value).ok());
        if let Some(other) = known.filter(|known| known.to != self.registration.to) {
            let name = self.key.split_once('/').map_or("", |(_, name)| name);
            return Err(format!("another node is registered as {name}: {}", other.to));
        }
        let lease = self.api.grant(self.ttl_s).map_err(failed)?;
        self.written_at = self.api.put(&self.key, &self.registration.to_value(), lease).map_err(failed)?;
        self.lease = Some(lease);
        Ok(())
    }

    /// Says something else of the node, unless a successor on this host has registered.
    fn rewrite(&mut self, registration: Registration, what: &str) {
        if self.lease.is_none() || self.registration == registration {
            return;
        }
        match self.api.replace(&self.key, self.written_at, Some(&registration.to_value())) {
            Ok(Some(revision)) => (self.registration, self.written_at) = (registration, revision),
            Ok(None) => {}
            Err(failure) => {
                log::warning(format_args!("front-ends are not told of this node {what}: {failure}"));
            }
        }
    }
}

/// The time between two tries while etcd does not answer.
const RETRY: Duration = Duration::from_secs(1);

/// A request to one of three endpoints that do not answer takes six seconds.
const END_PATIENCE: Duration = Duration::from_secs(3);
