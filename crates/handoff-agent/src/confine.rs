//! What the process may do: nothing that it does not need.

use baton_confine::{Kind, Limits, OF_HANDOFF_AGENT};
use baton_report::{OperatorError, log};

/// Gives up everything else for good.
pub(crate) fn confine(limits: &Limits) -> Result<(), OperatorError> {
    baton_confine::confine(Kind::HandoffAgent, limits)?;
    let has = rustix::thread::capabilities(None)
        .map_err(|error| OperatorError::of("ask which privileges are left", &error.into()))?;
    if has.permitted != OF_HANDOFF_AGENT {
        log::warning(
            OperatorError::new("the handoff agent lacks privileges: it can move no connection")
                .cause("the server was not started by root, or its service or container takes capabilities away")
                .remedy(
                    "let it have CAP_NET_ADMIN, CAP_BPF and CAP_NET_BIND_SERVICE; until then requests are relayed",
                ),
        );
    }
    Ok(())
}
