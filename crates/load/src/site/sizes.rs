//! Files of a few sizes, asked for in turn, such as WebStone's (Wowra, table III: 1, 2, 4, 8, 16, 64 and 256 KiB, and 1 MiB).

use super::model::{LoadSite, SiteFile};
use crate::script::Script;
use crate::targets::LoadRequest;

pub(super) fn make(bytes: &[u64]) -> LoadSite {
    let path = |bytes: &u64| format!("/sizes/{bytes}");
    let files = bytes.iter().map(|bytes| SiteFile::text(path(bytes), *bytes)).collect();
    let requests = bytes.iter().map(|bytes| LoadRequest::file(path(bytes), *bytes));
    LoadSite::new(format!("{} sizes", bytes.len()), files, Script::of_single_requests(requests.collect()))
}
