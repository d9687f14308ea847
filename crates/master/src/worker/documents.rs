//! Where documents are that migrate, as the master says, and what they were asked for.

use std::os::fd::OwnedFd;

use baton_cache::{PurgeOrder, SharedCache};
use baton_config::DocumentsOfWorker;
use baton_dcws::Map;
use baton_report::log;

use crate::channel::FromWorker;
use crate::memory_file;

/// Takes the map that came with a message. Copies that are no longer lent are dropped: their documents may have changed when
/// they are lent again.
pub(super) fn take_map(documents: &DocumentsOfWorker, cache: &SharedCache, descriptors: Vec<OwnedFd>) {
    let bytes = memory_file::read(descriptors.into_iter().next());
    let map = bytes.and_then(|bytes| Ok(serde_json::from_slice::<Map>(&bytes)?));
    match map {
        Ok(map) => {
            let withdrawn = documents.of(&map.home).replace(&map);
            cache.purge(&withdrawn.into_iter().map(PurgeOrder::Tag).collect::<Vec<_>>());
        }
        Err(error) => log::error(format_args!("cannot read where documents are: {error}")),
    }
}

/// What was asked for since the last call.
pub(super) fn served(documents: &DocumentsOfWorker) -> Vec<FromWorker> {
    let reports = |(site, documents): (_, std::sync::Arc<baton_site::documents::Documents>)| {
        let parts = documents.take_served(PART);
        parts.into_iter().map(move |served| FromWorker::DocumentsServed { site: Clone::clone(&site), served })
    };
    documents.all().into_iter().flat_map(reports).collect()
}

/// Documents in a message, which has room for twice as many.
const PART: usize = 500;
