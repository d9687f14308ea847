//! What the process may do: nothing that it does not need.

use std::io;

use baton_report::{Trouble, log};
use rustix::process::DumpableBehavior;
use rustix::thread::{CapabilitySet, CapabilitySets};

/// `NET_ADMIN` freezes and restores connections and attaches the table of flows, `BPF` makes it, `NET_BIND_SERVICE` restores
/// connections of ports below 1024.
const KEPT: CapabilitySet =
    CapabilitySet::NET_ADMIN.union(CapabilitySet::BPF).union(CapabilitySet::NET_BIND_SERVICE);

/// Gives up all other capabilities for good.
pub(crate) fn confine() -> Result<(), Trouble> {
    let confine = || {
        // It has the cluster's key and the requests of clients.
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        rustix::thread::set_no_new_privs(true)?;
        let had = rustix::thread::capabilities(None)?;
        let kept = had.permitted & KEPT;
        if had.permitted.contains(CapabilitySet::SETPCAP) {
            for capability in CapabilitySet::all().difference(KEPT).iter() {
                // Older kernels do not know all of them.
                let _ = rustix::thread::remove_capability_from_bounding_set(capability);
            }
        }
        let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
        rustix::thread::set_capabilities(None, sets)?;
        Ok::<_, io::Error>(kept)
    };
    let kept = confine().map_err(|error| Trouble::of("give up privileges", &error))?;
    if kept != KEPT {
        log::warning(
            Trouble::new("the mover lacks privileges: it can move no connection")
                .cause("the server was not started by root, or its service or container takes capabilities away")
                .remedy(
                    "let it have CAP_NET_ADMIN, CAP_BPF and CAP_NET_BIND_SERVICE; until then requests are relayed",
                ),
        );
    }
    Ok(())
}
