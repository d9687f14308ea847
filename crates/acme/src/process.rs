//! The process: does what the planner says, one thing after the other, and tells the master.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime};

use baton_report::{OperatorError, log, utc};
use instant_acme::CertificateIdentifier;

use crate::authority::{Authority, Request};
use crate::failure::Failure;
use crate::master::Master;
use crate::messages::FromAcme;
use crate::names::Names;
use crate::planner::{FailureScope, LONGEST_SLEEP, Planner, PlannerAction};
use crate::settings::AcmeSettings;
use crate::store::Store;
use crate::stored::StoredCertificate;
use crate::time::UnixTime;
use crate::workers::Workers;

/// Obtains and renews certificates until the master ends, which is at the other end of `socket`.
///
/// # Errors
/// If the store cannot be used.
pub fn run(socket: OwnedFd) -> Result<(), OperatorError> {
    let mut workers = Workers::new(Master::new(socket));
    let mut process = None;
    while !workers.master.has_ended() {
        if let Some(settings) = workers.master.take_settings() {
            process = Some(Process::configure(process, settings)?);
        }
        match &mut process {
            Some(process) => process.step(&mut workers)?,
            None => workers.master.wait_for_settings(LONGEST_SLEEP),
        }
    }
    Ok(())
}

/// An authority and its certificates.
struct Process {
    settings: AcmeSettings,
    store: Store,
    /// Held from the first action on: before, another server's process may be at work, such as that of the executable
    /// that this one replaces.
    lock: Option<File>,
    planner: Planner,
    /// `None` before the first request, and after a failure of the authority.
    authority: Option<Authority>,
    /// Why the authority failed last, if it has not worked since then.
    authority_error: Option<String>,
    certificates: BTreeMap<String, Certificate>,
}

struct Certificate {
    names: Names,
    stored: Option<StoredCertificate>,
    /// Why its last order failed.
    error: Option<String>,
    /// What the master was told last.
    told: Option<FromAcme>,
}

impl Process {
    /// Begins, or goes on with other settings.
    fn configure(old: Option<Self>, settings: AcmeSettings) -> Result<Self, OperatorError> {
        let store = Store::of(&settings.store, &settings.directory);
        store.create().map_err(|error| {
            let folder = settings.store.display();
            OperatorError::of(format_args!("use {folder} for certificates"), &error)
                .about_file(&settings.store, &error)
        })?;
        let (planner, lock) = match old {
            Some(old) if old.store == store => (old.planner, old.lock),
            _ => (Planner::new(fastrand::u64(..)), None),
        };
        let empty =
            |names: &Names| Certificate { names: names.clone(), stored: None, error: None, told: None };
        let certificates = &settings.certificates;
        let certificates =
            certificates.iter().map(|names| (names.first().to_owned(), empty(names))).collect();
        let mut process =
            Self { settings, store, lock, planner, authority: None, authority_error: None, certificates };
        process.read_store();
        Ok(process)
    }

    /// Takes what the store has for the plan.
    fn read_store(&mut self) {
        for certificate in self.certificates.values_mut() {
            let path = self.store.certificate_path(&certificate.names).display().to_string();
            let stored = self.store.certificate(&certificate.names);
            let stored = stored.map_err(|error| OperatorError::of(format_args!("read {path}"), &error));
            let checked = stored.and_then(|pem| {
                pem.map(|pem| StoredCertificate::check(&path, &pem, &certificate.names)).transpose()
            });
            certificate.stored = checked.unwrap_or_else(|trouble| {
                log::notice(format_args!("a stored certificate is replaced: {trouble}"));
                None
            });
        }
        let validity = |certificate: &Certificate| certificate.stored.as_ref().map(|stored| stored.validity);
        self.planner.configure(self.certificates.iter().map(|(name, one)| (name.clone(), validity(one))));
    }

    /// Does the next thing, or waits for it.
    fn step(&mut self, workers: &mut Workers) -> Result<(), OperatorError> {
        if self.lock.is_none() {
            return self.take_lock(workers);
        }
        match self.planner.next(now()) {
            PlannerAction::Order { name, failures } => self.order(&name, failures, workers),
            PlannerAction::AskRenewalInfo { name } => self.ask_renewal_info(&name),
            PlannerAction::Wait { until } => workers.master.wait_for_settings(until.since(now())),
        }
        self.tell_plans(&mut workers.master);
        Ok(())
    }

    /// Waits for another process to end that uses the store. What that one obtained meanwhile is new to the master.
    fn take_lock(&mut self, workers: &mut Workers) -> Result<(), OperatorError> {
        let lock =
            self.store.lock().map_err(|error| OperatorError::of("lock the store of certificates", &error))?;
        if lock.is_none() {
            workers.master.wait_for_settings(LOCK_LOOK);
            return Ok(());
        }
        self.lock = lock;
        self.read_store();
        let stored = self.certificates.iter().filter(|(_, certificate)| certificate.stored.is_some());
        stored.for_each(|(name, _)| workers.master.tell(&FromAcme::Issued { name: name.clone() }));
        self.tell_plans(&mut workers.master);
        Ok(())
    }

    fn order(&mut self, name: &str, failures: u32, workers: &mut Workers) {
        let Some(certificate) = self.certificates.get(name) else { return };
        let names = certificate.names.clone();
        let replaces = certificate.stored.as_ref().and_then(|stored| stored.id.clone());
        match self.obtain(&names, replaces, failures, workers) {
            Ok(stored) => {
                let until = utc(stored.validity.not_after.into());
                log::notice(format_args!("obtained a certificate for {names}, valid until {until}"));
                self.planner.handle_issued(name, stored.validity, now());
                self.authority_error = None;
                if let Some(certificate) = self.certificates.get_mut(name) {
                    certificate.stored = Some(stored);
                    certificate.error = None;
                }
                workers.master.tell(&FromAcme::Issued { name: name.to_owned() });
            }
            Err(failure) => self.note_failure(name, &failure, &format!("no new certificate for {names}")),
        }
    }

    fn obtain(
        &mut self,
        names: &Names,
        replaces: Option<CertificateIdentifier<'static>>,
        failures: u32,
        workers: &mut Workers,
    ) -> Result<StoredCertificate, Failure> {
        // After a failure the next kind of challenge has its turn: one of the ports may not be reachable.
        let kinds = &self.settings.challenges;
        let challenge = kinds[failures as usize % kinds.len()];
        let profile = self.settings.profile.clone();
        let request = Request { names, profile: profile.as_deref(), replaces: replaces.as_ref(), challenge };
        let pem = self.authority()?.order(&request, workers)?.into_bytes();
        let stored =
            StoredCertificate::check("the authority's answer", &pem, names).map_err(Failure::ours)?;
        self.store.write_certificate(names, &pem).map_err(|error| {
            let path = self.store.certificate_path(names);
            let trouble = OperatorError::of(format_args!("store it at {}", path.display()), &error);
            Failure::ours(trouble.about_file(&path, &error))
        })?;
        Ok(stored)
    }

    fn ask_renewal_info(&mut self, name: &str) {
        let stored = self.certificates.get(name).and_then(|certificate| certificate.stored.as_ref());
        let Some(id) = stored.and_then(|stored| stored.id.clone()) else {
            return self.planner.handle_no_renewal_info(name, now());
        };
        match self.authority().and_then(|authority| authority.renewal_info(&id)) {
            Ok(Some((window, ask_after))) => {
                self.authority_error = None;
                self.planner.handle_renewal_info(name, window, ask_after, now());
            }
            Ok(None) => self.planner.handle_no_renewal_info(name, now()),
            Err(failure) => {
                self.note_failure(name, &failure, &format!("no news about the certificate for {name}"));
            }
        }
    }

    fn authority(&mut self) -> Result<&mut Authority, Failure> {
        match &mut self.authority {
            Some(authority) => Ok(authority),
            none => Ok(none.insert(Authority::connect(&self.settings, &self.store)?)),
        }
    }

    fn note_failure(&mut self, name: &str, failure: &Failure, outcome: &str) {
        self.planner.handle_failure(name, failure.scope, failure.retry_after, now());
        if failure.lost_account
            && let Err(error) = self.store.set_account_aside()
        {
            log::error(OperatorError::of("set aside the account that the authority has forgotten", &error));
        }
        let error = failure.trouble.to_string();
        let next = self.planner.status(name).map(|plan| utc(plan.order_at.into())).unwrap_or_default();
        log::error(format_args!("{outcome}: {error}\n  next attempt: {next}"));
        if failure.scope == FailureScope::Authority {
            // Its directory may have moved.
            self.authority = None;
            self.authority_error = Some(error);
        } else if let Some(certificate) = self.certificates.get_mut(name) {
            certificate.error = Some(error);
        }
    }

    /// Tells the master what has changed.
    fn tell_plans(&mut self, master: &mut Master) {
        for (name, certificate) in &mut self.certificates {
            let Some(plan) = self.planner.status(name) else { continue };
            let error = certificate.error.as_ref().or(self.authority_error.as_ref()).cloned();
            let (order_at, failures) = (plan.order_at, plan.failures);
            let message = Some(FromAcme::Plan { name: name.clone(), order_at, failures, error });
            if certificate.told != message {
                certificate.told = message;
                certificate.told.iter().for_each(|message| master.tell(message));
            }
        }
    }
}

fn now() -> UnixTime {
    UnixTime::of(SystemTime::now())
}

/// The time between two looks at whether another process still uses the store.
const LOCK_LOOK: Duration = Duration::from_secs(5);
