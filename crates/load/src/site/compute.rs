//! The compute sweep of Suzumura et al. (WWW 2009): a script that adds integers and sends a file of 60 KB. From some number
//! of additions on, how the file gets to the client no longer matters.

use super::model::{LoadSite, SiteContent, SiteFile};
use super::programs::COMPUTE;
use crate::script::Script;
use crate::targets::LoadRequest;

pub(super) fn make(bytes: u64, operations: u64) -> LoadSite {
    let files = vec![
        SiteFile { path: "/compute.php".into(), content: SiteContent::Program(COMPUTE) },
        SiteFile::text(format!("/padding/{bytes}"), bytes),
    ];
    let target = format!("/compute.php?bytes={bytes}&operations={operations}");
    let script = Script::of_single_requests(vec![LoadRequest::page(target, Some(bytes))]);
    LoadSite::new(format!("{operations} additions and {bytes} bytes"), files, script)
}
