//! From a configuration to a worker's plan.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use baton_config::{Config, ProcessTables, Resources, Target};
use baton_process_table::Claim;
use baton_report::OperatorError;
use baton_site::plan::Plan;

use crate::privileges::WorkerUser;

/// Keeps the processes of a configuration.
pub(super) fn claims(config: &Config, process_tables: &ProcessTables) -> Vec<Claim> {
    let addresses = config.applications().filter_map(|application| application.to.as_ref());
    let process_tables = addresses.filter_map(|address| match address {
        Target::Unix(path) => process_tables.get(path),
        Target::Tcp(_) | Target::Host(..) => None,
    });
    process_tables.filter_map(Claim::new).collect()
}

/// The plan of a configuration, with its trees opened. `listener_ids` are those of its addresses, in order.
///
/// # Errors
/// What cannot be opened or read, with the likely cause.
pub(super) fn make_plan(
    config: &Config,
    listener_ids: &[usize],
    resources: &Resources,
    user: &WorkerUser,
) -> Result<Arc<Plan>, String> {
    resources.names.ask(&config.server.dns_servers);
    let ids: HashMap<_, _> = config.addresses().into_iter().zip(listener_ids.iter().copied()).collect();
    let plan = config.plan(&ids, resources).map(Arc::new).map_err(|error| {
        let denied = error.kind() == io::ErrorKind::PermissionDenied;
        match user.remedy_if_denied().filter(|_| denied) {
            Some(remedy) => OperatorError::new(error.to_string()).remedy(remedy).to_string(),
            None => error.to_string(),
        }
    })?;
    // An application whose host has no address yet is no reason not to serve the others.
    resources.names.begin(NAMES_PATIENCE).map_err(|error| format!("cannot start a thread: {error}"))?;
    Ok(plan)
}

/// How long a plan waits for the first lookups, so that the first requests find addresses.
const NAMES_PATIENCE: Duration = Duration::from_secs(2);
