//! What the response to a HEAD tells of a stored one (RFC 9111 section 4.3.5).

use std::sync::Arc;

use baton_http::Method;
use baton_http::origin::ResponseHead;
use baton_segment::rules::{Fetched, Times};

use crate::object::Object;
use crate::{Ask, SharedCache};

impl SharedCache {
    /// A HEAD that went to the origin at `requested_s` was answered. What is stored for the same requests is confirmed by it,
    /// or dropped. Errors tell nothing, but that there is nothing any more.
    pub(crate) fn note_head(&self, ask: &Ask, head: &ResponseHead, requested_s: u64) {
        let request = ask.head.get();
        if request.method != Method::Head || !matches!(head.status().code(), 200 | 404 | 410) {
            return;
        }
        let times = Times { requested_s, received_s: (self.unix_s)() };
        self.directory.with(ask, |entry| {
            self.drop_purged(entry);
            let object = entry.variants.iter().find(|object| object.stored.variant().matches(&request));
            let Some(object) = object.cloned() else { return };
            let fetched = Fetched { request: &request, head: head.clone(), times };
            match object.stored.freshen_by_head(&ask.route.rules, &fetched) {
                Some(Ok(stored)) => {
                    let (content, labels) = (Arc::clone(&object.content), object.labels.clone());
                    let new = Object::new(stored, content, labels, object.generation());
                    entry.replace(&object, Arc::new(new));
                }
                Some(Err(reason)) if reason.is_of_the_request() => {}
                Some(Err(_)) | None => entry.variants.retain(|other| !Arc::ptr_eq(other, &object)),
            }
        });
    }
}
