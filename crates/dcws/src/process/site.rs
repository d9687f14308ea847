//! A site of the process: its cooperation, and when its folder is looked at.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use baton_dispatch::Time;
use baton_report::{OperatorError, log};
use serde_json::Value;

use super::caller::Caller;
use super::event::Event;
use super::scan::{self, Folder};
use crate::settings::SiteSettings;
use crate::{Cooperation, Key, Origin};

pub(super) struct Site {
    settings: Arc<SiteSettings>,
    pub(super) cooperation: Cooperation,
    caller: Arc<Caller>,
    /// When the folder is looked at; none while that is under way, or there is none.
    scan_at: Option<Time>,
    /// What was found last.
    found: Folder,
    count_at: Time,
    /// Peers that have not replied, so that each is complained about once.
    silent: Vec<bool>,
}

impl Site {
    pub(super) fn new(settings: SiteSettings, now: Time, wall_us: u64) -> Result<Self, OperatorError> {
        let at = settings.at.clone();
        let key = Key::from_file(&settings.secret)
            .map_err(|why| OperatorError::new(format!("the documents of {at} stay at home: {why}")))?;
        let caller = Caller::new(&settings)?;
        let cooperation =
            Cooperation::new(at, settings.peers.clone(), key, settings.migration(), now, wall_us);
        Ok(Self {
            cooperation,
            caller: Arc::new(caller),
            scan_at: settings.files.is_some().then_some(now),
            found: Folder::default(),
            count_at: now,
            silent: vec![false; settings.peers.len()],
            settings: Arc::new(settings),
        })
    }

    pub(super) fn at(&self) -> &Origin {
        &self.settings.at
    }

    /// Whether it has these settings, so that it goes on.
    pub(super) fn has(&self, settings: &SiteSettings) -> bool {
        *self.settings == *settings
    }

    pub(super) fn due(&self) -> Time {
        let due = self.cooperation.poll_timeout().min(self.count_at);
        self.scan_at.map_or(due, |scan| due.min(scan))
    }

    /// Whether workers should say now what they have counted: several times in an interval, the last time shortly before
    /// its end.
    pub(super) fn wants_counts(&mut self, now: Time) -> bool {
        let is_due = self.count_at <= now;
        if is_due {
            self.count_at = now + (self.settings.statistics_ms * 1000 / COUNTS_PER_INTERVAL).max(1000);
        }
        is_due
    }

    /// Does what is due; what may wait reports to `events`.
    pub(super) fn advance(&mut self, now: Time, wall_us: u64, events: &Sender<Event>) {
        self.cooperation.handle_timeout(now);
        while let Some((peer, question)) = self.cooperation.question(now, wall_us) {
            let Some(to) = self.cooperation.peer(peer).cloned() else { continue };
            let (caller, events, site) = (Arc::clone(&self.caller), events.clone(), self.at().clone());
            let call = move || {
                let reply = caller.ask(&to, &question);
                // The process may have ended.
                let _ = events.send(Event::Replied { site, peer, reply });
            };
            if let Err(error) = std::thread::Builder::new().name("question".into()).spawn(call) {
                self.handle_reply(peer, Err(format!("cannot start a thread: {error}")), now);
            }
        }
        if self.scan_at.is_some_and(|at| at <= now) {
            self.scan_at = None;
            let (settings, events, before) = (Arc::clone(&self.settings), events.clone(), self.found.clone());
            let look = move || {
                let scanned = scan::look(&settings, &before);
                let _ = events.send(Event::Scanned { site: settings.at.clone(), scanned });
            };
            if let Err(error) = std::thread::Builder::new().name("folder".into()).spawn(look) {
                log::error(OperatorError::of("start a thread", &error));
                self.scan_at = Some(now + SCAN_AGAIN_US);
            }
        }
    }

    pub(super) fn handle_scan(&mut self, scanned: Folder, now: Time) {
        if let Some(files) = &self.settings.files {
            self.scan_at = Some(now + files.scan_ms * 1000);
        }
        if scanned != self.found {
            self.cooperation.handle_scan((*scanned.documents).clone(), now);
            self.found = scanned;
        }
    }

    pub(super) fn handle_reply(&mut self, peer: usize, reply: Result<(Vec<u8>, String), String>, now: Time) {
        let heard = match reply {
            Ok((body, signature)) => {
                let heard = self.cooperation.handle_reply(peer, &body, signature.as_bytes(), now);
                heard.map_err(|distrust| format!("its reply is refused: {}", distrust.word()))
            }
            Err(why) => {
                self.cooperation.handle_silence(peer, now);
                Err(why)
            }
        };
        let Some((silent, to)) = self.silent.get_mut(peer).zip(self.cooperation.peer(peer)) else { return };
        let was_silent = std::mem::replace(silent, heard.is_err());
        match heard {
            Err(why) if !was_silent => log::warning(format_args!("no word from {to}: {why}")),
            Ok(()) if was_silent => log::notice(format_args!("{to} answers again")),
            _ => {}
        }
    }

    pub(super) fn report(&self, now: Time) -> Value {
        self.cooperation.report(now)
    }
}

/// How often workers are asked in an interval of the policy.
const COUNTS_PER_INTERVAL: u64 = 10;

const SCAN_AGAIN_US: u64 = 10_000_000;
