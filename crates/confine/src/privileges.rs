//! Users, capabilities, core dumps.

use std::io;

use baton_sys::process::{Identity, drop_privileges, read_auxiliary_vector};
use rustix::process::DumpableBehavior;
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::table::Rule;

/// Becomes another user if there is one, and keeps no capability but those of the rule.
pub(crate) fn reduce(rule: &Rule, user: Option<Identity>) -> io::Result<()> {
    read_auxiliary_vector();
    let had = rustix::thread::capabilities(None)?;
    if rule.is_bounded && had.effective.contains(CapabilitySet::SETPCAP) {
        for capability in CapabilitySet::all().difference(rule.keeps).iter() {
            // Older kernels do not know all of them.
            let _ = rustix::thread::remove_capability_from_bounding_set(capability);
        }
    }
    if let Some(identity) = user {
        drop_privileges(identity)?;
    }
    if rule.keeps != CapabilitySet::all() {
        keep(rule.keeps)?;
    }
    if !rule.may_gain {
        rustix::thread::set_no_new_privs(true)?;
    }
    if !rule.is_open {
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    Ok(())
}

fn keep(kept: CapabilitySet) -> io::Result<()> {
    // What is executed would inherit them.
    match rustix::thread::clear_ambient_capability_set() {
        // A kernel or a sandbox without them.
        Ok(()) | Err(rustix::io::Errno::INVAL) => {}
        Err(error) => return Err(error.into()),
    }
    // A change of the user has taken them, unless it was not root that changed.
    let kept = rustix::thread::capabilities(None)?.permitted & kept;
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}
