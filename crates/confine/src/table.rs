//! The table: kinds of processes, and what each may do.

use rustix::thread::CapabilitySet;

/// The kinds of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The master has all keys, binds ports and starts the others.
    Master,
    /// A worker parses what clients send.
    Worker,
    /// `baton acme` obtains certificates.
    Acme,
    /// `baton documents` decides where documents are that migrate.
    Documents,
    /// `baton members` asks etcd and DNS for nodes of the cluster.
    Members,
    /// `baton mover` moves connections between hosts.
    HandoffAgent,
    /// A manager keeps the processes of an application running.
    Manager,
    /// An application with a user of its own.
    Application,
    /// An application that runs as the server's user.
    ApplicationOfServer,
}

/// What a kind of process may do. Everything else is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// The capabilities that it keeps if it has them.
    pub(crate) keeps: CapabilitySet,
    /// Whether its bounding set is reduced to the same.
    pub(crate) is_bounded: bool,
    /// Whether a program that it starts may have more rights than itself, as `sendmail` has.
    pub(crate) may_gain: bool,
    /// Whether a core dump may have its memory, and another process of its user look at it.
    pub(crate) is_open: bool,
    /// Whether it may start programs.
    pub(crate) may_execute: bool,
    /// Where it may write.
    pub(crate) writes: Writes,
    /// Whether it may signal processes that it has not started, and trace them.
    pub(crate) may_signal_others: bool,
    /// Which system calls it may make.
    pub(crate) calls: CallList,
}

/// Which system calls a process may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallList {
    All,
    /// What a server needs.
    Server,
    /// What a server needs, and `bpf`.
    ServerAndBpf,
}

/// Where a process may write by name. Descriptors that it is given are not concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    Anywhere,
    /// Below the folders that `Limits::writes` names.
    Named,
}

/// The handoff agent: `NET_ADMIN` freezes and restores connections and attaches the table of flows, `BPF` makes it,
/// `NET_BIND_SERVICE` restores connections of ports below 1024.
pub const OF_HANDOFF_AGENT: CapabilitySet =
    CapabilitySet::NET_ADMIN.union(CapabilitySet::BPF).union(CapabilitySet::NET_BIND_SERVICE);

/// A manager: it starts, owns sockets for and ends processes of another user.
const OF_MANAGER: CapabilitySet = CapabilitySet::SETUID
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::DAC_OVERRIDE);

impl Kind {
    pub(crate) const fn rule(self) -> Rule {
        // A process that reads what strangers send.
        let child = Rule {
            keeps: CapabilitySet::empty(),
            is_bounded: true,
            may_gain: false,
            is_open: false,
            may_execute: false,
            writes: Writes::Named,
            may_signal_others: false,
            calls: CallList::Server,
        };
        // A process that starts programs of the operator.
        let starter = Rule {
            is_bounded: false,
            may_gain: true,
            may_execute: true,
            writes: Writes::Anywhere,
            may_signal_others: true,
            calls: CallList::All,
            ..child
        };
        match self {
            Self::Master => Rule { keeps: CapabilitySet::all(), ..starter },
            Self::Worker | Self::Acme | Self::Documents | Self::Members => child,
            Self::HandoffAgent => Rule { keeps: OF_HANDOFF_AGENT, calls: CallList::ServerAndBpf, ..child },
            Self::Manager => Rule { keeps: OF_MANAGER, ..starter },
            Self::Application => Rule { is_open: true, ..starter },
            // Its user could trace and signal the server.
            Self::ApplicationOfServer => {
                Rule { is_open: true, may_gain: false, may_signal_others: false, ..starter }
            }
        }
    }
}
