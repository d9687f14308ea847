//! How many descriptors a process may have, and how many a worker needs.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that a worker has beside connections and cached files: listeners, logs, pollers, pipes, helpers.
const OTHERS: u64 = 64;

/// Raises the soft limit to the hard one, for this process and its workers. The soft limit's usual 1024 is there for
/// programs that use select(2), which this one does not.
///
/// Returns what to tell the user if one worker's connections and files could reach the limit.
pub(super) fn raise_limit(connections_max: usize, files_max: usize) -> Option<String> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    let limit = if setrlimit(Resource::Nofile, raised).is_ok() { maximum } else { current };
    advice(limit, connections_max as u64, files_max as u64)
}

/// Connections are what to give up: without a descriptor for the file, a connection is worth nothing.
fn advice(limit: Option<u64>, connections_max: u64, files_max: u64) -> Option<String> {
    // While one file is sent to a client, another may be opened for it: a descriptor beside the cached ones.
    let needed = connections_max + files_max + OTHERS;
    let limit = limit.filter(|&limit| limit < needed)?;
    Some(format!(
        "too few descriptors: a worker may open {limit}, but connections_max = {connections_max} and files_max = \
         {files_max} can need {needed}; beyond the limit new connections wait. Raise it (`ulimit -Hn {needed}`, or \
         LimitNOFILE={needed} in the systemd unit), or set connections_max = {} or less",
        limit.saturating_sub(files_max + OTHERS).max(1)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_a_setting_that_fits() {
        assert_eq!(advice(None, 10_000, 2_000), None);
        assert_eq!(advice(Some(12_064), 10_000, 2_000), None);
        let text = advice(Some(12_063), 10_000, 2_000).unwrap();
        assert!(
            text.contains("can need 12064") && text.ends_with("connections_max = 9999 or less"),
            "{text}"
        );
        assert!(advice(Some(64), 10_000, 2_000).unwrap().ends_with("connections_max = 1 or less"));
    }
}
