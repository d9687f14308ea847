//! What clients ask for.

use std::fmt;

use serde::Serialize;

use crate::comparison::Task;
use crate::load::LoadRequest;

/// One kind of load: the page, in any coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Workload {
    /// From a file, which does not change.
    File,
    /// From the origin, each time anew.
    Origin,
}

impl Workload {
    pub(super) const ALL: [Self; 2] = [Self::File, Self::Origin];

    /// Whether the origin takes part.
    pub(super) fn asks_the_origin(self) -> bool {
        self == Self::Origin
    }
}

impl Task for Workload {
    fn connections(self) -> usize {
        32
    }

    fn requests(self) -> Vec<LoadRequest> {
        let folder = if self.asks_the_origin() { PASSED } else { "" };
        vec![LoadRequest::page(format!("{folder}{PAGE}"), None)]
    }

    fn fields(self) -> &'static str {
        "Accept-Encoding: gzip, br, zstd\r\n"
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "a file",
            Self::Origin => "an origin's response",
        })
    }
}

/// The page.
pub(super) const PAGE: &str = "/page.html";
/// Below this, every request goes to the origin.
pub(super) const PASSED: &str = "/pass";
