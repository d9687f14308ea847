//! The server architectures, a file each: which process or thread runs which step.
//!
//! All of them drive the same machines ([`Session::step`](baton_session::session::Session::step)), so that a comparison
//! compares architectures and nothing else. Open two of the files side by side: that *is* the comparison.

mod amped;
mod auto;
mod mp;
mod mt;
mod n_copy;
mod pipeline;
mod shared_symped;
mod sped;
mod symped;
mod threads;
mod threads_cache;

use std::io;

use baton_session::send_queue::SendfileMode;

use crate::architecture_name::for_each_architecture;
use crate::process::Process;
use crate::settings::Tuning;

pub use crate::architecture_name::{ArchitectureName, UnknownArchitecture};

/// How many processes an architecture wants, and what they share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Worker processes; at least 1.
    pub processes: usize,
    /// The CPU that each process is bound to, if any.
    pub cpu_of_process: Vec<Option<usize>>,
    /// Which process accepts from which socket.
    pub listeners: ListenerSharing,
}

impl Topology {
    /// The CPU of each process's listeners, by which connections can be [steered](Tuning::steering).
    ///
    /// # Errors
    /// Why they cannot.
    pub fn cpu_of_listener(&self) -> Result<Vec<usize>, &'static str> {
        if self.processes == 1 {
            return Err("there is one worker");
        }
        if self.listeners == ListenerSharing::Shared {
            return Err("all workers of this architecture accept from one socket");
        }
        let bound: Option<Vec<usize>> = self.cpu_of_process.iter().copied().collect();
        let cpus = bound.ok_or("`server.cpu_affinity` is off")?;
        let is_shared = |(index, cpu): (usize, &usize)| cpus[..index].contains(cpu);
        if cpus.iter().enumerate().any(is_shared) {
            Err("there are more workers than CPUs")
        } else {
            Ok(cpus)
        }
    }
}

/// Which process accepts from which socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerSharing {
    /// All processes accept from the same sockets.
    Shared,
    /// Each process has sockets of its own (`SO_REUSEPORT`), and a CPU that it is bound to.
    PerProcess,
}

/// What an architecture decides before the first client connects; declared in its file.
struct Architecture {
    /// Worker processes on so many CPUs, unless the configuration sets their number.
    processes: fn(&Tuning, cpus: usize) -> usize,
    /// Which sockets several processes accept from.
    listeners: ListenerSharing,
    /// Loops of a worker process, each with an interest set of its own.
    loops: fn(&Tuning) -> usize,
    /// What a client that takes nothing holds up, if `sendfile` waits for it; `None`: only the thread that sends to it.
    held_up_by_a_slow_client: Option<&'static str>,
    /// Overrides the settings that the architecture determines.
    adapt: fn(&mut Tuning),
    /// Serves until told to stop.
    serve: fn(&Process) -> io::Result<()>,
}

macro_rules! architectures {
    ($($variant:ident $module:ident $word:literal $summary:literal;)+) => {
        fn architecture(name: ArchitectureName) -> Architecture {
            match name { $(ArchitectureName::$variant => $module::ARCHITECTURE,)+ }
        }
    };
}

for_each_architecture!(architectures!);

/// How many processes the configured architecture wants on a machine with these CPUs, and what they share.
pub fn topology(tuning: &Tuning, cpus: &[usize]) -> Topology {
    let Architecture { processes, listeners, .. } = architecture(tuning.architecture);
    let per_cpu = cpus.len().max(1);
    let processes = tuning.processes.unwrap_or_else(|| processes(tuning, per_cpu)).max(1);
    let listeners = if processes == 1 { ListenerSharing::Shared } else { listeners };
    // A single process is left to the scheduler: it may be one of several servers on the machine.
    let pinned = tuning.affinity && listeners == ListenerSharing::PerProcess;
    let cpu_of_process =
        (0..processes).map(|process| cpus.get(process % per_cpu).copied().filter(|_| pinned)).collect();
    Topology { processes, cpu_of_process, listeners }
}

/// How many loops, each with an interest set of its own, a worker process runs.
pub fn loops(tuning: &Tuning) -> usize {
    (architecture(tuning.architecture).loops)(tuning)
}

/// What a client that takes nothing would hold up, if `sendfile` waited for it; `None`: only the thread that sends to
/// it.
pub fn held_up_by_a_slow_client(name: ArchitectureName) -> Option<&'static str> {
    architecture(name).held_up_by_a_slow_client
}

/// Whether files leave by `sendfile` under this architecture at all.
pub fn uses_sendfile(architecture: ArchitectureName) -> bool {
    adapted(Tuning { architecture, ..Tuning::default() }).sendfile != SendfileMode::Never
}

/// The settings, as the architecture overrides them.
pub(crate) fn adapted(mut tuning: Tuning) -> Tuning {
    (architecture(tuning.architecture).adapt)(&mut tuning);
    tuning
}

/// Serves with the configured architecture until told to stop.
pub(crate) fn serve(process: &Process) -> io::Result<()> {
    (architecture(process.tuning.architecture).serve)(process)
}
