//! The process of a host, in a thread of the test, which is its master.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Instant;

use baton_membership::{Etcd, FromMembers, MembersSettings, Order, Register, Report, ToMembers};
use baton_supervise::messages::{MESSAGE_BYTES_MAX, receive, send};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::store::PATIENCE;

/// A host with the process that keeps its view.
pub(crate) struct Host {
    socket: OwnedFd,
    process: Option<JoinHandle<()>>,
    last: Report,
    tickets: u64,
}

impl Host {
    /// Begins to follow this etcd.
    pub(crate) fn start(etcd: Option<Etcd>, state_file: &Path) -> Self {
        let settings = MembersSettings {
            etcd,
            dns: Vec::new(),
            dns_servers: Vec::new(),
            state_file: state_file.to_owned(),
        };
        let (socket, its_end) = baton_sys::passing::message_pair().expect("a pair");
        let mut file = File::from(
            rustix::fs::memfd_create("settings", rustix::fs::MemfdFlags::CLOEXEC).expect("a file"),
        );
        file.write_all(&serde_json::to_vec(&settings).expect("JSON")).expect("written");
        send(&socket, &ToMembers::Configure, &[file.as_fd()]).expect("sent");
        let process = std::thread::spawn(move || {
            baton_membership::run(its_end).unwrap_or_else(|trouble| panic!("{trouble}"));
        });
        Self { socket, process: Some(process), last: Report::default(), tickets: 0 }
    }

    /// The same for a node of that name.
    pub(crate) fn node(etcd: Etcd, name: &str, folder: &Path) -> Self {
        let register = Register {
            name: name.into(),
            to: format!("http://{name}.example:80"),
            weight: 1,
            mover: None,
            public: None,
            tells_left: true,
        };
        let etcd = Etcd { register: Some(register), ..etcd };
        Self::start(Some(etcd), &folder.join(format!("{name}.json")))
    }

    /// Waits for a report of this kind.
    pub(crate) fn wait_for(&mut self, what: &str, is_so: impl Fn(&Report) -> bool) -> Report {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(&self.last) {
            self.receive(deadline, what);
        }
        self.last.clone()
    }

    /// Waits for these nodes; `(a)` is one that is held.
    pub(crate) fn wait_for_nodes(&mut self, nodes: &str) -> Report {
        self.wait_for(&format!("nodes {nodes}"), |report| names(report) == nodes)
    }

    /// Lets it write an order, and waits for that.
    pub(crate) fn order(
        &mut self,
        name: &str,
        drained: Option<bool>,
        weight: Option<u32>,
    ) -> Result<(), String> {
        self.tickets += 1;
        let order = Order { name: name.into(), drained, weight };
        send(&self.socket, &ToMembers::Order { ticket: self.tickets, order }, &[]).expect("sent");
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some((ticket, error)) = self.receive(deadline, "an order") {
                assert_eq!(ticket, self.tickets);
                return error.map_or(Ok(()), Err);
            }
        }
    }

    fn receive(&mut self, deadline: Instant, what: &str) -> Option<(u64, Option<String>)> {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).expect("a time");
        let mut readable = [PollFd::new(&self.socket, PollFlags::IN)];
        let ready = poll(&mut readable, Some(&timeout)).expect("polled");
        assert!(ready > 0, "waited for: {what}\nlast: {:#?}", self.last);
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        let (message, descriptors) = receive(&self.socket, &mut buffer).expect("received").expect("it lives");
        match message {
            FromMembers::Report => {
                let mut file = File::from(descriptors.into_iter().next().expect("a file"));
                file.rewind().expect("at its beginning");
                self.last = serde_json::from_reader(file).expect("a report");
                None
            }
            FromMembers::Ordered { ticket, error } => Some((ticket, error)),
        }
    }

    /// Its server has so much left, and is drained; or it is not.
    pub(crate) fn tell_left(&self, left: Option<u64>) {
        send(&self.socket, &ToMembers::Left { left }, &[]).expect("sent");
    }

    /// Ends in order: its node leaves first.
    pub(crate) fn end(mut self) {
        for message in [ToMembers::Leave, ToMembers::End] {
            send(&self.socket, &message, &[]).expect("sent");
        }
        self.process.take().expect("a process").join().expect("no panic");
    }

    /// Ends without a word, as one that is killed.
    pub(crate) fn die(self) {
        let Self { socket, process, .. } = self;
        drop(socket);
        process.expect("a process").join().expect("no panic");
    }
}

/// The nodes of a report, in a line.
pub(crate) fn names(report: &Report) -> String {
    let name = |member: &baton_membership::Member| match (member.held, member.drained, member.leaving) {
        (true, ..) => format!("({})", member.name),
        (_, true, _) => format!("{}-drained", member.name),
        (_, _, true) => format!("{}-leaving", member.name),
        _ => member.name.clone(),
    };
    report.members.iter().map(name).collect::<Vec<_>>().join(" ")
}
