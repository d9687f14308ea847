//! A master for a test: it runs the process as a thread, gives challenges to the workers and keeps what it is told.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Instant;

use baton_acme::{AcmeSettings, ChallengeKind, FromAcme, Names, Store, ToAcme};
use baton_report::OperatorError;
use baton_supervise::messages::{self, MESSAGE_BYTES_MAX};
use baton_sys::passing;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::authority::{PATIENCE, Pebble};
use crate::workers::Workers;

/// The process and the socket to it.
pub(crate) struct Master {
    socket: OwnedFd,
    process: Option<JoinHandle<Result<(), OperatorError>>>,
    workers: Workers,
    settings: AcmeSettings,
}

impl Master {
    /// Starts the process with these settings.
    pub(crate) fn start(settings: &AcmeSettings, workers: &Workers) -> Self {
        let (socket, other) = passing::message_pair().expect("a pair of sockets");
        let process = std::thread::spawn(move || baton_acme::run(other));
        let workers = workers.clone();
        let mut master = Self { socket, process: Some(process), workers, settings: settings.clone() };
        master.configure(settings);
        master
    }

    /// Gives the process other settings.
    pub(crate) fn configure(&mut self, settings: &AcmeSettings) {
        self.settings = settings.clone();
        let mut file: File = tempfile::tempfile().expect("a file");
        file.write_all(&serde_json::to_vec(settings).expect("JSON")).expect("written");
        messages::send(&self.socket, &ToAcme::Configure, &[file.as_fd()]).expect("sent");
    }

    /// Does what the process asks for until it says something that is looked for.
    #[track_caller]
    pub(crate) fn wait_for<T>(&mut self, what: &str, mut find: impl FnMut(&FromAcme) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut heard = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = Timespec::try_from(left).expect("a time");
            poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout)).expect("polled");
            assert!(Instant::now() < deadline, "waited in vain for {what}: {heard:?}");
            let mut buffer = vec![0; MESSAGE_BYTES_MAX];
            let message = messages::receive::<FromAcme>(&self.socket, &mut buffer).expect("a message");
            let (message, _) = message.unwrap_or_else(|| panic!("the process has ended: {heard:?}"));
            let found = find(&message);
            match &message {
                FromAcme::PutChallenge { id, challenge } => {
                    self.workers.put(*id, challenge.clone());
                    messages::send(&self.socket, &ToAcme::ChallengeReady { id: *id }, &[]).expect("sent");
                }
                FromAcme::RemoveChallenge { id } => self.workers.remove(*id),
                FromAcme::Issued { .. } | FromAcme::Plan { .. } => {}
            }
            if let Some(found) = found {
                return found;
            }
            heard.push(message);
        }
    }

    /// Waits for a certificate: its chain and key in the store.
    #[track_caller]
    pub(crate) fn wait_for_certificate(&mut self, wanted: &str) -> String {
        self.wait_for(&format!("a certificate for {wanted}"), |message| match message {
            FromAcme::Issued { name } if name == wanted => Some(()),
            _ => None,
        });
        let names = self.settings.certificates.iter().find(|names| names.first() == wanted).expect("wanted");
        let stored = Store::of(&self.settings.store, &self.settings.directory).certificate(names);
        String::from_utf8(stored.expect("read").expect("stored")).expect("text")
    }

    /// Waits until an order or a question has failed: why, and how often orders have failed.
    #[track_caller]
    pub(crate) fn wait_for_error(&mut self, wanted: &str) -> (String, u32) {
        self.wait_for(&format!("an error about {wanted}"), |message| match message {
            FromAcme::Plan { name, error: Some(error), failures, .. } if name == wanted => {
                Some((error.clone(), *failures))
            }
            _ => None,
        })
    }

    /// Ends the process, as a master does that ends.
    pub(crate) fn end(mut self) {
        let process = self.process.take().expect("a process");
        drop(self);
        process.join().expect("no panic").expect("no error");
    }
}

/// Settings for an authority: these certificates, each with one or more names.
pub(crate) fn settings(pebble: &Pebble, store: &Path, certificates: &[&[&str]]) -> AcmeSettings {
    let names = |names: &&[&str]| {
        Names::new(names.iter().map(|&name| name.to_owned()).collect()).expect("good names")
    };
    AcmeSettings {
        directory: pebble.directory(),
        store: store.to_owned(),
        email: Some("admin@example.org".into()),
        external_account: None,
        // Without a wish, this authority chooses at random.
        profile: Some("default".into()),
        challenges: vec![ChallengeKind::Http01],
        roots: Some(pebble.roots()),
        certificates: certificates.iter().map(names).collect(),
    }
}
