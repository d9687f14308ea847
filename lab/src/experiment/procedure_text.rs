//! Measurements that are no load on contenders: each is a module of its own, and a file has its parameters.

use serde::Deserialize;

use crate::chains::ChainSettings;
use crate::moved::MovedSettings;
use crate::restart::RestartSettings;

/// A procedure.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum ProcedureText {
    Chains(ChainSettings),
    Moved(MovedSettings),
    Restart(RestartSettings),
}

impl ProcedureText {
    /// Whether it needs network namespaces, which are root's.
    pub(crate) fn needs_root(&self) -> bool {
        matches!(self, Self::Moved(_))
    }
}
