//! A visitor: reads a page with its images, as a browser does that has none of them yet, and follows a link.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use memchr::memmem;
use ureq::{Agent, ResponseExt as _};

/// What visitors got so far.
#[derive(Debug, Default)]
pub(super) struct Got {
    pub(super) documents: AtomicU64,
    pub(super) failures: AtomicU64,
}

/// Visits the site whose pages begin at this URL again and again, until it is over.
pub(super) fn visit(entry: &str, seed: u64, got: &Got, over: &AtomicBool) {
    let mut random = fastrand::Rng::with_seed(seed);
    // It keeps its connections, as browsers do.
    let config = Agent::config_builder().proxy(None).max_redirects(REDIRECTS_MAX);
    let visitor = Agent::from(config.timeout_per_read(Some(PATIENCE)).build());
    while !over.load(Ordering::Relaxed) {
        let mut page = entry.to_owned();
        for _ in 0..PAGES_OF_A_VISIT {
            let Some((at, html)) = get(&visitor, &page, got) else { break };
            for image in addresses(&html, b" src=\"", &at) {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                get(&visitor, &image, got);
            }
            let links = addresses(&html, b" href=\"", &at);
            let Some(next) = random.choice(links) else { break };
            page = next;
        }
    }
}

/// Gets a document, through its redirects, and says where it is. A kept connection may have ended: then it asks again.
fn get(visitor: &Agent, url: &str, got: &Got) -> Option<(String, Vec<u8>)> {
    let ask = || -> Result<_, ureq::Error> {
        let mut reply = visitor.get(url).call()?;
        Ok((reply.get_uri().to_string(), reply.body_mut().read_to_vec()?))
    };
    let reply = ask().or_else(|_| ask());
    let count = if reply.is_ok() { &got.documents } else { &got.failures };
    count.fetch_add(1, Ordering::Relaxed);
    reply.ok()
}

/// The addresses behind such attributes, made absolute.
fn addresses(html: &[u8], attribute: &[u8], at: &str) -> Vec<String> {
    let folder = at.rfind('/').map_or(at, |slash| &at[..=slash]);
    let found = memmem::find_iter(html, attribute).filter_map(|begin| {
        let rest = &html[begin + attribute.len()..];
        let value = std::str::from_utf8(&rest[..memchr::memchr(b'"', rest)?]).ok()?;
        Some(if value.starts_with("http://") { value.to_owned() } else { format!("{folder}{value}") })
    });
    found.collect()
}

const PAGES_OF_A_VISIT: usize = 10;
const REDIRECTS_MAX: u32 = 5;
const PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_wherever_they_lead() {
        let html = b"<img src=\"0-1.png\" alt=\"\"><img src=\"http://b/~migrate/a/80/0-2.png\"><a href=\"page1.html\">";
        assert_eq!(
            addresses(html, b" src=\"", "http://a/index.html"),
            ["http://a/0-1.png", "http://b/~migrate/a/80/0-2.png"]
        );
        assert_eq!(addresses(html, b" href=\"", "http://a/index.html"), ["http://a/page1.html"]);
    }
}
