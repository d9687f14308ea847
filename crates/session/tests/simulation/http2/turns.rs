//! The laws of priorities (RFC 9218): whose DATA may come while another stream could send.

use super::Http2Client;
use super::state::Priority;
use crate::client::Moment;

impl Http2Client {
    /// DATA of stream `id` have come. Other streams can send for sure if their head has come, their whole content is in
    /// memory, and their first window has room.
    pub(super) fn check_turn(&mut self, id: u32, moment: Moment) {
        if moment.is_disk_cold || self.has_reprioritized {
            return;
        }
        let Some(Priority { urgency, is_incremental }) = self.streams.get(&id).map(|stream| stream.priority)
        else {
            return;
        };
        for (&other_id, other) in &mut self.streams {
            let is_file = !self.requests[other.request].expected.is_applications;
            let can_send = other.response.is_some() && !other.is_over() && other.first_window > 0;
            if other_id == id || !is_file || !can_send {
                continue;
            }
            let what = format!("DATA of {id}, and {other_id} could send");
            assert!(other.priority.urgency >= urgency, "{what}: it is more urgent");
            if other.priority.urgency > urgency {
                continue;
            }
            match (is_incremental, other.priority.is_incremental) {
                (false, false) => assert!(other_id > id, "{what}: it was asked for first"),
                (true, true) => {
                    assert!(!other.passed_by.contains(&id), "{what}: it is its turn");
                    other.passed_by.push(id);
                }
                _ => {}
            }
        }
        self.streams.entry(id).and_modify(|stream| stream.passed_by.clear());
    }
}
