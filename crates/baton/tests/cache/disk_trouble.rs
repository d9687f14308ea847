//! What operators and disks do to a cache's folder while a server runs.

use std::fs;

use crate::common::folder::pattern;
use crate::common::server::wait_until;
use crate::disk::{Kept, RECOVERED, WRITTEN};
use crate::site::status;

/// Goal: an upgrade costs no request to the origin. Method: the new server finds what the old one has stored, once that has
/// left the folder.
#[test]
fn an_upgrade_keeps_what_the_folder_has() {
    let kept = Kept::new();
    let site = kept.site("sped", "");
    let mut visitor = site.visitor("upgraded");
    let before = visitor.get("200|Cache-Control: max-age=600||#3000000");
    site.wait_until_disk(WRITTEN);
    let workers = site.server.workers();
    site.server.ctl(&["upgrade"]);
    wait_until("the old worker's end", || {
        workers.iter().all(|worker| rustix::process::test_kill_process(*worker).is_err())
    });
    wait_until("the new worker has the folder", || {
        site.server.status_text().replace([' ', '\n'], "").contains(RECOVERED)
    });
    let after = site.again(&visitor.path).get("500");
    assert_eq!(status(&after), "baton; hit");
    assert!(after.body == before.body);
    assert_eq!(visitor.seen().len(), 1);
}

/// Goal: a folder that an operator removes costs nothing but what was there. Method: it is removed while the server runs, which
/// goes on; the next server makes another one.
#[test]
fn a_folder_that_vanishes_is_made_again() {
    let kept = Kept::new();
    let site = kept.site("sped", "");
    let answer = "200|Cache-Control: max-age=600||#100000";
    let mut first = site.visitor("vanished");
    first.get(answer);
    site.wait_until_disk(WRITTEN);
    fs::remove_dir_all(kept.folder()).expect("the folder");
    assert!(site.again(&first.path).get(answer).body == pattern(100_000, 7));
    for number in 0..20 {
        let mut next = site.visitor("vanished");
        assert!(next.get(answer).body == pattern(100_000, 7), "{number}");
        assert!(next.get(answer).body == pattern(100_000, 7), "{number}");
    }
    site.stop();
    let site = kept.site("sped", "");
    let response = site.again(&first.path).get(answer);
    assert_eq!(status(&response), "baton; fwd=uri-miss; stored");
    site.wait_until_disk(WRITTEN);
    site.stop();
    assert_eq!(status(&kept.site("sped", "").again(&first.path).get("500")), "baton; hit");
}
