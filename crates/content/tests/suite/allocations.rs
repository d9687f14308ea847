//! The steady state allocates nothing.

use allocation_counter::measure;
use baton_content::{Blocking, BodySource, CacheSettings, Found, HeadForm, Query, View};
use baton_http::{AcceptedCodings, Coding};

use crate::site::Site;

const FORMS: [HeadForm; 3] = [HeadForm::KeepAlive, HeadForm::Close, HeadForm::KeepAliveHttp10];

fn serve(site: &Site, path: &str, blocking: Blocking) {
    let accepted = AcceptedCodings::parse(Some(b"gzip, br"));
    let query = Query { path: path.as_bytes(), accepted, view: View::default() };
    match site.cache.find(&site.tree, &query, &site.now(), blocking) {
        Ok(Found::File(stored)) => {
            for form in FORMS {
                let whole = stored.whole(form, &site.now(), BodySource::Memory);
                assert!(whole.head_len > 0);
            }
            let _ = stored.body(1, 2);
        }
        Ok(Found::Missing | Found::AddSlash) => {}
        other => panic!("{path}: {other:?}"),
    }
}

/// Hits of every kind, within a second and across the change of one.
#[test]
fn a_hit_allocates_nothing() {
    let settings =
        CacheSettings { memory_file_bytes_max: 100, revalidate_ms: 60_000, ..CacheSettings::default() };
    let site = Site::configured(settings, |config| config.precompressed = vec![Coding::Brotli]);
    site.write("small.txt", b"small");
    site.write("small.txt.br", b"packed");
    site.write("large.txt", &[0; 1_000]);
    let paths = ["/small.txt", "/large.txt", "/nothing", "/dir"];
    site.write("dir/x", b"x");
    // The first request of each kind fills the caches, heads of each form included.
    for path in paths {
        serve(&site, path, Blocking::Allowed);
    }
    for path in paths {
        for _ in 0..3 {
            let allocations = measure(|| serve(&site, path, Blocking::Never));
            assert_eq!(allocations.count_total, 0, "{path}");
            site.wait(1);
        }
    }
}
