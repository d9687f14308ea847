//! How many descriptors this process may have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// At least so many descriptors for this process, if it may: for its clients, and for the servers that it starts. Returns
/// how many it has.
pub(crate) fn raise_descriptors(wanted: u64) -> u64 {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|maximum| maximum < wanted) {
        // Root may have more than its own limit.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.current, maximum: Some(wanted) });
        limit = getrlimit(Resource::Nofile);
    }
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
        .expect("descriptors for the clients");
    limit.maximum.unwrap_or(u64::MAX)
}
