//! The process: what its threads tell goes into the view, and the view to the master.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use baton_report::{OperatorError, log, utc};

use crate::etcd::{Api, WatchLine};
use crate::follower::Follower;
use crate::inputs::Input;
use crate::master::Master;
use crate::messages::{EtcdReport, Report, ToMembers};
use crate::names::Hosts;
use crate::orders;
use crate::registrar::Registrar;
use crate::saved::SavedView;
use crate::settings::MembersSettings;
use crate::view::{Applied, Member, View};

/// Keeps the view until the master ends, which is at the other end of `socket`.
///
/// # Errors
/// If nothing can be asked: authorities that cannot be read, or no threads.
pub fn run(socket: OwnedFd) -> Result<(), OperatorError> {
    let master = Master::new(socket);
    let settings = master.settings().map_err(|error| OperatorError::of("understand the master", &error))?;
    let Some(settings) = settings else { return Ok(()) };
    let (inputs, coming) = channel();
    master.listen(inputs.clone()).map_err(|error| OperatorError::of("start a thread", &error))?;
    Process::begin(settings, master, &inputs)?.run(&coming, &inputs);
    Ok(())
}

struct Process {
    settings: MembersSettings,
    master: Master,
    begun: Instant,
    view: View,
    hosts: Hosts,
    etcd: Option<Following>,
    /// What the master was told last, and what the state file has.
    told: Option<Report>,
    saved: SavedView,
}

/// etcd, as it is followed.
struct Following {
    api: Arc<Api>,
    follower: Follower,
    registrar: Option<Registrar>,
    report: EtcdReport,
    /// When it last answered, by either clock.
    seen_at_s: Option<u64>,
    watch_since: Instant,
    is_registered: bool,
}

impl Process {
    fn begin(
        settings: MembersSettings,
        master: Master,
        inputs: &Sender<Input>,
    ) -> Result<Self, OperatorError> {
        let prefix = settings.etcd.as_ref().map(|etcd| etcd.prefix.clone()).unwrap_or_default();
        let file = settings.state_file.display();
        let saved = SavedView::read(&settings.state_file).unwrap_or_else(|error| {
            log::warning(format_args!("the last view of the cluster in {file} cannot be used: {error}"));
            None
        });
        let saved = saved.filter(|saved| saved.prefix == prefix);
        let hold_ms = settings.etcd.as_ref().map_or(0, |etcd| etcd.hold_s.saturating_mul(1_000));
        let view = match (&saved, &settings.etcd) {
            (Some(saved), Some(_)) => {
                View::restored(hold_ms, saved.cluster_id, saved.nodes.clone(), saved.orders.clone())
            }
            _ => View::new(hold_ms),
        };
        let seen_at_s = saved.as_ref().map(|saved| saved.seen_at_s);
        let saved = saved.unwrap_or_else(|| SavedView { prefix, ..SavedView::default() });
        let failed = |error| OperatorError::of("start a thread", &error);
        let etcd = match &settings.etcd {
            Some(etcd) => {
                let api = Arc::new(Api::new(etcd)?);
                let interval = Duration::from_secs((etcd.ttl_s / 3).max(1));
                let follower = Follower::start(Arc::clone(&api), interval, inputs.clone()).map_err(failed)?;
                let register = |register| Registrar::start(Arc::clone(&api), etcd, register, inputs.clone());
                let registrar = etcd.register.as_ref().map(register).transpose().map_err(failed)?;
                let report = EtcdReport { stale_since_s: seen_at_s, ..EtcdReport::default() };
                let watch_since = Instant::now();
                Some(Following {
                    api,
                    follower,
                    registrar,
                    report,
                    seen_at_s,
                    watch_since,
                    is_registered: false,
                })
            }
            None => None,
        };
        let hosts = Hosts::new(&settings, &saved.dns)?;
        Ok(Self { settings, master, begun: Instant::now(), view, hosts, etcd, told: None, saved })
    }

    fn run(mut self, coming: &Receiver<Input>, inputs: &Sender<Input>) {
        loop {
            self.tell();
            match coming.recv_timeout(self.patience()) {
                Ok(Input::MasterEnded) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Input::Master(ToMembers::End)) => {
                    self.registrar().iter().for_each(|registrar| registrar.end());
                    return;
                }
                Ok(input) => self.handle(input, inputs),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.view.handle_timeout(self.now_ms());
        }
    }

    fn handle(&mut self, input: Input, inputs: &Sender<Input>) {
        match input {
            Input::Master(ToMembers::Leave) => {
                self.registrar().iter().for_each(|registrar| registrar.leave());
            }
            Input::Master(ToMembers::Left { left }) => {
                self.registrar().iter().for_each(|registrar| registrar.tell_left(left));
            }
            Input::Master(ToMembers::Order { ticket, order }) => match &self.etcd {
                Some(etcd) => {
                    if let Err(error) = orders::write(Arc::clone(&etcd.api), ticket, order, inputs.clone()) {
                        self.master.ordered(ticket, Err(error.to_string()));
                    }
                }
                None => self.master.ordered(ticket, Err("no etcd is asked".into())),
            },
            Input::Master(ToMembers::Configure | ToMembers::End) | Input::MasterEnded => {}
            Input::Range(Ok(snapshot), asked_at) => {
                let applied = self.view.handle_range(&snapshot, asked_at, self.now_ms());
                self.handle_answer(applied);
            }
            Input::Range(Err(failure), _) => self.handle_silence(&failure.to_string()),
            Input::Watched(number, line) => self.handle_line(number, line),
            Input::Registered(result) => self.handle_registered(result),
            Input::Ordered(ticket, result) => {
                // The view has it by the time that the operator looks.
                self.etcd.iter().for_each(|etcd| etcd.follower.hurry());
                self.master.ordered(ticket, result);
            }
        }
    }

    /// etcd has answered.
    fn handle_answer(&mut self, applied: Applied) {
        let Some(etcd) = &mut self.etcd else { return };
        etcd.seen_at_s = Some(now_s());
        if etcd.report.error.take().is_some() {
            log::notice(format_args!("etcd answers again, at {}", etcd.api.endpoint()));
        }
        etcd.report.stale_since_s = None;
        if applied == Applied::Lost {
            etcd.report.losses += 1;
            log::warning(
                "etcd has lost data, or is another one: nodes that it does not have count for a while \
                 nevertheless",
            );
        }
        if applied == Applied::Overtaken {
            return;
        }
        match etcd.follower.follow(self.view.revision(), applied == Applied::Lost) {
            Ok(true) => etcd.watch_since = Instant::now(),
            Ok(false) => {}
            Err(error) => log::error(format_args!("cannot watch etcd: {error}")),
        }
        // Its lease may be there, but the key is gone.
        if let Some(registrar) = &etcd.registrar
            && etcd.is_registered
            && !self.view.has_live(registrar.name())
        {
            etcd.is_registered = false;
            registrar.put_again();
        }
    }

    /// etcd has not answered.
    fn handle_silence(&mut self, why: &str) {
        let Some(etcd) = &mut self.etcd else { return };
        etcd.report.stale_since_s = etcd.seen_at_s;
        if etcd.report.error.as_deref() != Some(why) {
            if etcd.report.error.is_none() {
                let since = etcd.seen_at_s.map_or_else(
                    || "it never answered".into(),
                    |seen| format!("its last view counts, of {}", utc(time_of(seen))),
                );
                log::warning(format_args!("{why}\n  {since}"));
            }
            etcd.report.error = Some(why.to_owned());
        }
    }

    fn handle_line(&mut self, number: u64, line: Option<WatchLine>) {
        let now_ms = self.now_ms();
        let Some(etcd) = self.etcd.as_mut().filter(|etcd| etcd.follower.is_current(number)) else { return };
        match line {
            Some(WatchLine::Events(events)) => {
                etcd.seen_at_s = Some(now_s());
                self.view.handle_events(&events, now_ms);
                etcd.follower.note(self.view.revision());
            }
            Some(WatchLine::Compacted) => {
                etcd.report.compactions += 1;
                etcd.follower.handle_end(true);
            }
            Some(WatchLine::Ended(why)) => {
                log::notice(format_args!("etcd has ended the watch: {why}"));
                etcd.follower.handle_end(false);
            }
            None => {
                // One that ends at once would end at once again: the next range is soon enough.
                let is_old = etcd.watch_since.elapsed() > WATCH_MIN;
                etcd.follower.handle_end(is_old);
            }
        }
    }

    fn handle_registered(&mut self, result: Result<(), String>) {
        let Some(etcd) = &mut self.etcd else { return };
        let Some(name) = etcd.registrar.as_ref().map(|registrar| registrar.name().to_owned()) else { return };
        if result.is_ok() != etcd.is_registered || etcd.report.registered.is_none() {
            match &result {
                Ok(()) => log::notice(format_args!("registered as node {name}")),
                Err(why) => log::warning(format_args!("not registered as node {name}: {why}")),
            }
        }
        // A range that was asked for before does not have it yet.
        let is_new = result.is_ok() && !etcd.is_registered;
        if is_new {
            etcd.follower.hurry();
        }
        etcd.is_registered = result.is_ok();
        etcd.report.registered = Some((name, result.err()));
    }

    fn registrar(&self) -> Option<&Registrar> {
        self.etcd.as_ref()?.registrar.as_ref()
    }

    /// Tells the master what has changed, and keeps it.
    fn tell(&mut self) {
        let mut members = self.view.members();
        let from_dns = self.hosts.members();
        for member in &from_dns {
            // What a node says of itself counts more.
            if members.iter().all(|known| known.name != member.name && known.to != member.to) {
                members.push(member.clone());
            }
        }
        let etcd = self.etcd.as_mut().map(|etcd| {
            etcd.report.endpoint = etcd.api.endpoint().to_owned();
            (etcd.report.revision, etcd.report.cluster_id) = (self.view.revision(), self.view.cluster_id());
            etcd.report.skipped =
                self.view.skipped().map(|(key, skip)| (key.into(), skip.to_string())).collect();
            etcd.report.clone()
        });
        let before = self.told.as_ref();
        let is_changed = before.is_none_or(|before| before.members != members);
        let report = Report {
            changes: before.map_or(0, |before| before.changes + u64::from(is_changed)),
            is_restored: etcd.as_ref().is_some_and(|etcd| etcd.revision == 0),
            members,
            etcd,
        };
        if before == Some(&report) {
            return;
        }
        let was_stale =
            before.and_then(|before| before.etcd.as_ref()).is_some_and(|etcd| etcd.error.is_some());
        let is_stale = report.etcd.as_ref().is_some_and(|etcd| etcd.error.is_some());
        note_changes(before.map_or(&[][..], |before| &before.members), &report);
        self.master.report(&report);
        let may_save = !report.is_restored;
        self.told = Some(report);
        if may_save && (is_changed || was_stale != is_stale) {
            self.save(from_dns);
        }
    }

    fn save(&mut self, dns: Vec<Member>) {
        let (nodes, orders) = self.view.to_save();
        self.saved.seen_at_s = self.etcd.as_ref().map_or_else(now_s, |etcd| etcd.seen_at_s.unwrap_or(0));
        self.saved.cluster_id = self.view.cluster_id();
        (self.saved.nodes, self.saved.orders, self.saved.dns) = (nodes, orders, dns);
        if let Err(error) = self.saved.write(&self.settings.state_file) {
            let file = self.settings.state_file.display();
            log::warning(format_args!(
                "the view of the cluster is not kept for a restart: cannot write {file}: {error}"
            ));
        }
    }

    /// How long to wait for an input.
    fn patience(&self) -> Duration {
        let held = self.view.poll_timeout();
        let held = held.map(|at| Duration::from_millis(at.saturating_sub(self.now_ms())));
        // A name does not announce its changes.
        let names = (!self.hosts.is_empty()).then_some(NAMES_LOOK);
        held.into_iter().chain(names).min().unwrap_or(LONGEST_WAIT)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Tells the operator of nodes that come and go.
fn note_changes(before: &[Member], report: &Report) {
    let find = |members: &[Member], name: &str| members.iter().find(|one| one.name == name).cloned();
    for now in &report.members {
        let Member { name, to, .. } = now;
        match find(before, name) {
            None if report.is_restored => {
                log::notice(format_args!("node {name} at {to}: from the last view"));
            }
            None => log::notice(format_args!("node {name} at {to} has joined")),
            Some(was) if was.to != *to => log::notice(format_args!("node {name} is at {to} now")),
            Some(was) if now.held && !was.held => {
                log::warning(format_args!("node {name} is held: etcd does not have it any more, nor others"));
            }
            Some(was) if now.leaving && !was.leaving => log::notice(format_args!("node {name} is leaving")),
            Some(was) if now.drained != was.drained || now.weight != was.weight => {
                let what = if now.drained { "drained" } else { "not drained" };
                log::notice(format_args!("node {name}: {what}, weight {}", now.weight));
            }
            Some(_) => {}
        }
    }
    for was in before.iter().filter(|was| find(&report.members, &was.name).is_none()) {
        log::notice(format_args!("node {} is gone", was.name));
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn time_of(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// How long a watch lives that was one.
const WATCH_MIN: Duration = Duration::from_secs(1);

/// The time between two looks at what names have become.
const NAMES_LOOK: Duration = Duration::from_secs(1);

const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
