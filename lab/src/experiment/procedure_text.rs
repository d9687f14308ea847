//! Measurements that are no load on contenders: each is a module of its own, and a file has its parameters.

use serde::Deserialize;

use crate::cluster::ClusterSettings;
use crate::cluster_faults::FaultsSettings;
use crate::documents::DocumentsSettings;
use crate::front_cost::FrontCostSettings;
use crate::restart::RestartSettings;

/// A procedure.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum ProcedureText {
    Cluster(ClusterSettings),
    ClusterFaults(FaultsSettings),
    Documents(DocumentsSettings),
    FrontCost(FrontCostSettings),
    Restart(RestartSettings),
}

impl ProcedureText {
    /// Whether it needs network namespaces or mounts, which are root's.
    pub(crate) fn needs_root(&self) -> bool {
        !matches!(self, Self::Restart(_))
    }
}
