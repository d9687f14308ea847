//! The process: looks at folders, speaks with peers, and tells the master where documents are.
//!
//! One thread has the state. Whatever may wait has a thread of its own and reports to it: the master's socket, the socket
//! on which workers pass on peers' questions, a look at a folder, a question to a peer.

mod caller;
mod door;
mod event;
mod scan;
mod site;

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime};

use baton_dispatch::Time;
use baton_report::{OperatorError, log};
use baton_supervise::messages::{self, MESSAGE_BYTES_MAX};
use rustix::fs::MemfdFlags;
use serde::Serialize;
use serde_json::Value;

use self::door::Door;
use self::event::{Event, PeerQuestion};
use self::site::Site;
use crate::messages::{FromDocuments, ToDocuments};
use crate::settings::DocumentsSettings;
use crate::{AuthenticQuestion, Distrust, Envelope, Origin};

/// Cooperates until the master ends, which is at the other end of `socket`.
///
/// # Errors
/// If no thread can be started.
pub fn run(socket: OwnedFd) -> Result<(), OperatorError> {
    let (sender, events) = mpsc::channel();
    let socket = Arc::new(socket);
    let reader = Arc::clone(&socket);
    let to_state = sender.clone();
    std::thread::Builder::new()
        .name("master".into())
        .spawn(move || listen_to_master(&reader, &to_state))
        .map_err(|error| OperatorError::of("start a thread", &error))?;
    let mut process = Process {
        socket,
        sender,
        sites: Vec::new(),
        door: None,
        began: Instant::now(),
        told: Vec::new(),
        has_ended: false,
    };
    process.run(&events);
    Ok(())
}

struct Process {
    socket: Arc<OwnedFd>,
    sender: Sender<Event>,
    sites: Vec<Site>,
    door: Option<Door>,
    began: Instant,
    /// The status that the master has.
    told: Vec<Value>,
    has_ended: bool,
}

impl Process {
    fn run(&mut self, events: &Receiver<Event>) {
        while !self.has_ended {
            let due = self.sites.iter().map(Site::due).min();
            let wait = due.map_or(IDLE, |due| Duration::from_micros(due.saturating_sub(self.now())));
            match events.recv_timeout(wait.clamp(PAUSE, IDLE)) {
                Ok(event) => self.handle(event),
                Err(RecvTimeoutError::Timeout) => {}
                // The process has a sender itself.
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // What has come meanwhile changes what is due.
            while let Ok(event) = events.try_recv() {
                self.handle(event);
            }
            self.advance();
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.now();
        match event {
            Event::Ended => self.has_ended = true,
            Event::Configured(settings) => self.configure(*settings),
            Event::Served(origin, served) => {
                if let Some(site) = self.site(&origin) {
                    site.cooperation.handle_served(&served);
                }
            }
            Event::Tell(ticket, path) => {
                let documents = self.sites.iter().filter_map(|site| site.cooperation.tell_of(&path, now));
                let told = FromDocuments::Told { ticket, documents: documents.collect() };
                self.has_ended |= messages::send(&*self.socket, &told, &[]).is_err();
            }
            Event::Announced(field, reply) => {
                // The client may be gone.
                let _ = reply.send(self.admit(&field));
            }
            Event::Asked(asked) => self.answer(asked),
            Event::Replied { site, peer, reply } => {
                if let Some(site) = self.site(&site) {
                    site.handle_reply(peer, reply, now);
                }
            }
            Event::Scanned { site, scanned } => {
                if let Some(site) = self.site(&site) {
                    site.handle_scan(scanned, now);
                }
            }
        }
    }

    fn site(&mut self, at: &Origin) -> Option<&mut Site> {
        self.sites.iter_mut().find(|site| site.at() == at)
    }

    fn configure(&mut self, settings: DocumentsSettings) {
        if self.door.as_ref().is_none_or(|door| door.path() != settings.socket) {
            self.door = Door::open(&settings.socket, self.sender.clone())
                .inspect_err(|error| {
                    let socket = settings.socket.display();
                    log::error(OperatorError::of(
                        format_args!("listen on {socket} for questions of other servers"),
                        error,
                    ));
                })
                .ok();
        }
        let mut old = std::mem::take(&mut self.sites);
        for one in settings.sites {
            let kept = old.iter().position(|site| site.has(&one)).map(|index| old.swap_remove(index));
            match kept.map_or_else(|| Site::new(one, self.now(), wall_us()), Ok) {
                Ok(site) => self.sites.push(site),
                Err(trouble) => log::error(trouble),
            }
        }
    }

    fn admit(&mut self, field: &str) -> Result<AuthenticQuestion, Distrust> {
        let admitted = Envelope::read(field).and_then(|envelope| {
            let site = self.site(envelope.to()).ok_or(Distrust::Stranger)?;
            site.cooperation.admit(field, wall_us())
        });
        admitted.inspect_err(|distrust| tell_refused(*distrust))
    }

    fn answer(&mut self, asked: PeerQuestion) {
        let (now, wall_us) = (self.now(), wall_us());
        let reply = match self.site(&asked.site) {
            Some(site) => {
                let reply = site.cooperation.answer(asked.admitted, &asked.body, now);
                // Workers serve what is new before the peer sends clients here.
                let map = site.cooperation.take_map(wall_us).map(|map| (site.at().clone(), map));
                if let Some((at, map)) = map {
                    self.tell(&FromDocuments::Map { site: at }, &map);
                }
                reply
            }
            None => Err(Distrust::Stranger),
        };
        // The client that asked may be gone.
        let _ = asked.reply.send(reply.inspect_err(|distrust| tell_refused(*distrust)));
    }

    /// Does what is due.
    fn advance(&mut self) {
        let (now, wall_us) = (self.now(), wall_us());
        let mut maps = Vec::new();
        let mut wants_counts = false;
        for site in &mut self.sites {
            wants_counts |= site.wants_counts(now);
            site.advance(now, wall_us, &self.sender);
            maps.extend(site.cooperation.take_map(wall_us).map(|map| (site.at().clone(), map)));
        }
        for (site, map) in maps {
            self.tell(&FromDocuments::Map { site }, &map);
        }
        if wants_counts {
            self.has_ended |= messages::send(&*self.socket, &FromDocuments::Count, &[]).is_err();
            self.tell_status(now);
        }
    }

    fn tell_status(&mut self, now: Time) {
        let status: Vec<Value> = self.sites.iter().map(|site| site.report(now)).collect();
        if status != self.told {
            self.tell(&FromDocuments::Status, &status);
            self.told = status;
        }
    }

    /// Tells the master something that comes in a file in memory. Once it has ended, that is of no use, and no error.
    fn tell(&mut self, message: &FromDocuments, contents: &impl Serialize) {
        let file = || {
            let mut file = File::from(rustix::fs::memfd_create("baton-documents", MemfdFlags::CLOEXEC)?);
            file.write_all(&serde_json::to_vec(contents)?)?;
            Ok::<_, std::io::Error>(file)
        };
        match file() {
            Ok(file) => self.has_ended |= messages::send(&*self.socket, message, &[file.as_fd()]).is_err(),
            Err(error) => log::error(OperatorError::of("tell the workers where documents are", &error)),
        }
    }

    /// Microseconds since the process began, for the policy.
    fn now(&self) -> Time {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

fn tell_refused(distrust: Distrust) {
    log::notice(format_args!("a question of another server is refused: {}", distrust.word()));
}

/// Reads what the master says until it ends.
fn listen_to_master(socket: &OwnedFd, events: &Sender<Event>) {
    let mut buffer = vec![0; MESSAGE_BYTES_MAX];
    loop {
        let event = match messages::receive(socket, &mut buffer) {
            Ok(Some((ToDocuments::Served { site, served }, _))) => Event::Served(site, served),
            Ok(Some((ToDocuments::Tell { ticket, path }, _))) => Event::Tell(ticket, path),
            Ok(Some((ToDocuments::Configure, descriptors))) => match read_settings(descriptors) {
                Ok(settings) => Event::Configured(Box::new(settings)),
                Err(error) => {
                    log::error(format_args!("cannot understand the master: {error}"));
                    Event::Ended
                }
            },
            Ok(None) => Event::Ended,
            Err(error) => {
                // Master and process are of different versions: a new process may be of the right one.
                log::error(format_args!("cannot understand the master: {error}"));
                Event::Ended
            }
        };
        let is_last = matches!(event, Event::Ended);
        if events.send(event).is_err() || is_last {
            return;
        }
    }
}

fn read_settings(descriptors: Vec<OwnedFd>) -> std::io::Result<DocumentsSettings> {
    use std::os::unix::fs::FileExt as _;
    let file = descriptors.into_iter().next().map(File::from);
    let file = file.ok_or_else(|| std::io::Error::other("settings without a descriptor"))?;
    let mut bytes = vec![0; usize::try_from(file.metadata()?.len()).map_err(std::io::Error::other)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// Microseconds since 1970.
fn wall_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// The longest wait: sites set shorter ones.
const IDLE: Duration = Duration::from_secs(60);

/// The shortest wait: while a question is under way, the policy may want another one.
const PAUSE: Duration = Duration::from_millis(20);
