//! What each kind of process may do. A process enforces it on itself before its first byte of input, however the server was
//! started, and so does everything that it starts.
//!
//! [`Kind::rule`] is the table; `docs/threat-model.md` shows it with its reasons. The parts: [`privileges`] are
//! capabilities and core dumps, [`walls`] are files and signals, [`calls`] are system calls.

mod calls;
mod privileges;
mod table;
mod walls;

use std::path::PathBuf;

use baton_report::{OperatorError, log};
use baton_sys::process::Identity;
use rustix::thread::CapabilitySet;

pub use self::calls::Calls;
pub use self::table::{Kind, OF_HANDOFF_AGENT};

/// What the configuration says about the limits of a process.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// The user to become, if it is another one.
    pub user: Option<Identity>,
    /// The folders below which it may write.
    pub writes: Vec<PathBuf>,
    /// What becomes of a system call that the process has no use for.
    pub calls: Calls,
    /// Whether debuggers of the same user may look at the process, and core dumps are written.
    pub is_debuggable: bool,
    /// Whether it, or what it starts, runs as root because the configuration says so: then files of all users are open to it.
    pub is_root_on_request: bool,
}

/// Gives up for good all that the table does not give to this kind of process. The process has one thread.
///
/// # Errors
/// If the kernel refuses: the process must not go on.
pub fn confine(kind: Kind, limits: &Limits) -> Result<(), OperatorError> {
    let mut rule = kind.rule();
    rule.is_open |= limits.is_debuggable;
    if limits.is_root_on_request {
        rule.keeps |= match rule.may_gain {
            // Root's programs get all of it anyway when they begin; and as that would be a gain, the kernel would forget that they
            // end with their parent.
            true => CapabilitySet::all(),
            false => CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH,
        };
    }
    privileges::reduce(&rule, limits.user)
        .map_err(|error| OperatorError::of("give up privileges", &error))?;
    if let Err(error) = walls::build(&rule, &limits.writes) {
        return Err(OperatorError::new(format!("cannot give up rights to files and signals: {error}")));
    }
    calls::filter(rule.calls, limits.calls).map_err(|error| {
        OperatorError::new(format!("cannot filter system calls: {error}"))
            .cause("the kernel or the container does not allow filters")
            .remedy("let it, or go without: `system_calls = \"off\"` in [server]")
    })
}

/// Says in the log, once for a server, what this kernel cannot enforce.
pub fn report_gaps() {
    if let Some(gap) = walls::gap() {
        log::warning(gap);
    }
}
