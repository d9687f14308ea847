//! Certificates from an authority: the process that obtains them (`baton acme`), and its proofs at the workers.
//!
//! ```text
//!   process ── PutChallenge ──► master ── PutProof ──► every worker
//!           ◄─ ChallengeReady ─        ◄─ HasProof ──  (all that serve)
//!           ── Issued ────────►        a reload of the certificates
//! ```
//!
//! The process runs while the server serves and no other takes its place: that one has a process of its own, which
//! waits until this one has left the store.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use baton_acme::{AcmeSettings, Challenge, FromAcme, ToAcme, UnixTime};
use baton_confine::Limits;
use baton_report::{OperatorError, log, utc};
use baton_sys::process::Ended;
use serde_json::{Value, json};

use super::channel::ToWorker;
use super::child::{Child, Kind};
use super::privileges::WorkerUser;
use super::workers::Workers;

/// The process, what it has asked for and what it has told.
#[derive(Debug)]
pub(super) struct Acme {
    /// `None`: no site gets its certificate from an authority.
    settings: Option<AcmeSettings>,
    pub(super) child: Child,
    proofs: BTreeMap<u64, Proof>,
    plans: BTreeMap<String, Plan>,
    has_issued: bool,
}

/// A proof at the workers.
#[derive(Debug)]
struct Proof {
    challenge: Challenge,
    /// Workers that have not said that they have it.
    awaited: BTreeSet<usize>,
}

/// What the process will do about a certificate.
#[derive(Debug)]
struct Plan {
    order_at: UnixTime,
    failures: u32,
    error: Option<String>,
}

impl Acme {
    /// Obtains nothing yet.
    pub(super) fn new(limits: Limits, now: Instant) -> Self {
        Self {
            settings: None,
            child: Child::new(&KIND, limits, now),
            proofs: BTreeMap::new(),
            plans: BTreeMap::new(),
            has_issued: false,
        }
    }

    /// Obtains what these settings want from now on.
    pub(super) fn configure(&mut self, settings: Option<AcmeSettings>, now: Instant) {
        if self.settings == settings {
            return;
        }
        let store =
            |settings: &Option<AcmeSettings>| settings.as_ref().map(|settings| settings.store.clone());
        let has_moved = store(&self.settings) != store(&settings);
        let wanted = settings.iter().flat_map(|settings| &settings.certificates);
        let wanted: BTreeSet<_> = wanted.map(|names| names.first().to_owned()).collect();
        self.plans.retain(|name, _| wanted.contains(name));
        self.settings = settings;
        if has_moved {
            // It may not write there. Another one begins with the settings.
            self.child.stop(now);
        } else if let Some(settings) = &self.settings
            && let Err(error) = self.child.configure(&ToAcme::Configure, settings)
        {
            log::error(OperatorError::of(
                "tell the process that obtains certificates what is wanted",
                &error,
            ));
        }
    }

    /// Starts the process, or ends it, as is due. `may_run`: this server serves, and no other takes its place.
    pub(super) fn advance(&mut self, may_run: bool, user: &WorkerUser, now: Instant) {
        match &self.settings {
            _ if self.child.is_stopping() => self.child.stop(now),
            Some(settings) if may_run => {
                if !self.child.may_start(now) {
                    return;
                }
                if let Err(trouble) = create_store(settings, user) {
                    // Only the operator can help; later a reload, or the next try, finds it mended.
                    log::error(trouble);
                    return self.child.start_at(now + STORE_LOOK);
                }
                self.child.start(&ToAcme::Configure, settings, &settings.store, user, now);
            }
            _ => self.child.stop(now),
        }
    }

    /// When [`advance`](Self::advance) has something to do.
    pub(super) fn deadline(&self, may_run: bool) -> Option<Instant> {
        self.child.deadline(self.settings.is_some() && may_run)
    }

    /// The process has sent messages.
    pub(super) fn handle_messages(&mut self, workers: &Workers) {
        for (message, _) in self.child.receive() {
            self.handle(message, workers);
        }
    }

    fn handle(&mut self, message: FromAcme, workers: &Workers) {
        match message {
            FromAcme::PutChallenge { id, challenge } => {
                workers.tell_all(&ToWorker::PutProof { id, challenge: challenge.clone() }, &[]);
                let awaited = workers.serving().collect();
                self.proofs.insert(id, Proof { challenge, awaited });
                self.report_ready(id);
            }
            FromAcme::RemoveChallenge { id } => {
                self.proofs.remove(&id);
                workers.tell_all(&ToWorker::RemoveProof { id }, &[]);
            }
            FromAcme::Issued { .. } => self.has_issued = true,
            FromAcme::Plan { name, order_at, failures, error } => {
                self.plans.insert(name, Plan { order_at, failures, error });
            }
        }
    }

    /// A worker has a proof.
    pub(super) fn handle_has_proof(&mut self, index: usize, id: u64) {
        if let Some(proof) = self.proofs.get_mut(&id) {
            proof.awaited.remove(&index);
            self.report_ready(id);
        }
    }

    /// A worker begins to serve: it gets the proofs that the others have.
    pub(super) fn introduce(&self, index: usize, workers: &Workers) {
        for (id, proof) in &self.proofs {
            // If the message cannot be sent, the worker has ended.
            let _ =
                workers.tell(index, &ToWorker::PutProof { id: *id, challenge: proof.challenge.clone() }, &[]);
        }
    }

    /// A worker has ended.
    pub(super) fn forget_worker(&mut self, index: usize) {
        let waiting = |(id, proof): (&u64, &mut Proof)| proof.awaited.remove(&index).then_some(*id);
        let ids: Vec<_> = self.proofs.iter_mut().filter_map(waiting).collect();
        ids.into_iter().for_each(|id| self.report_ready(id));
    }

    /// Tells the process if all workers have the proof.
    fn report_ready(&self, id: u64) {
        let is_ready = self.proofs.get(&id).is_some_and(|proof| proof.awaited.is_empty());
        if is_ready {
            // If the message cannot be sent, the process has ended or will complain.
            let _ = self.child.tell(&ToAcme::ChallengeReady { id });
        }
    }

    /// A child has ended. Returns whether it was the process.
    pub(super) fn handle_end(&mut self, pid: i32, ended: Ended, workers: &Workers, now: Instant) -> bool {
        if !self.child.handle_end(pid, ended, now) {
            return false;
        }
        for id in std::mem::take(&mut self.proofs).into_keys() {
            workers.tell_all(&ToWorker::RemoveProof { id }, &[]);
        }
        true
    }

    /// Whether it has issued a certificate since the last call of [`take_news`](Self::take_news).
    pub(super) fn has_news(&self) -> bool {
        self.has_issued
    }

    /// Whether it has issued a certificate since this was last called.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_issued)
    }

    /// For the status.
    pub(super) fn report(&self) -> Option<Value> {
        let settings = self.settings.as_ref()?;
        let plan = |(name, plan): (&String, &Plan)| {
            json!({
                "name": name,
                "next_order": utc(plan.order_at.into()),
                "failures": plan.failures,
                "error": plan.error,
            })
        };
        Some(json!({
            "directory": settings.directory,
            "store": settings.store,
            "pid": self.child.pid(),
            "plans": self.plans.iter().map(plan).collect::<Vec<_>>(),
        }))
    }
}

/// Creates the folder of the certificates, which only the process and the master may enter.
fn create_store(settings: &AcmeSettings, user: &WorkerUser) -> Result<(), OperatorError> {
    let store = &settings.store;
    user.create_folder(store).map_err(|error| {
        OperatorError::of(format_args!("create {} for certificates", store.display()), &error)
            .about_file(store, &error)
            .remedy("name another folder: `store` in [acme]")
    })
}

const KIND: Kind = Kind {
    command: "acme",
    who: "the process that obtains certificates",
    // It has nothing to finish.
    grace: Duration::from_secs(2),
};

/// The time between two tries to create the store.
const STORE_LOOK: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{MESSAGE_BYTES_MAX, receive};

    #[test]
    fn a_proof_is_ready_when_no_worker_is_awaited_and_new_workers_get_it() {
        let (workers, theirs) = Workers::for_test(2);
        let mut acme = Acme::new(Limits::default(), Instant::now());
        let challenge = Challenge::Http { token: "t".into(), key_authorization: "t.k".into() };
        acme.handle(FromAcme::PutChallenge { id: 7, challenge: challenge.clone() }, &workers);
        let awaited = |acme: &Acme| acme.proofs[&7].awaited.iter().copied().collect::<Vec<_>>();
        assert_eq!(awaited(&acme), [0, 1]);
        acme.handle_has_proof(0, 7);
        assert_eq!(awaited(&acme), [1]);
        acme.forget_worker(1);
        assert_eq!(awaited(&acme), [0; 0]);

        acme.introduce(0, &workers);
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        for _ in 0..2 {
            let (message, _) = receive::<ToWorker>(&theirs[0], &mut buffer).unwrap().unwrap();
            assert_eq!(message, ToWorker::PutProof { id: 7, challenge: challenge.clone() });
        }
    }
}
