//! A visitor: reads a page with its images, as a browser does that has none of them yet, and follows a link.

use std::collections::HashMap;
use std::io::BufReader;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use memchr::memmem;

use crate::reply::Reply;

/// What visitors got so far.
#[derive(Debug, Default)]
pub(super) struct Got {
    pub(super) documents: AtomicU64,
    pub(super) redirects: AtomicU64,
    pub(super) failures: AtomicU64,
}

/// Connections to servers, by host.
#[derive(Default)]
struct Visitor {
    connections: HashMap<String, BufReader<TcpStream>>,
}

/// Visits the site whose pages begin at this URL again and again, until it is over.
pub(super) fn visit(entry: &str, seed: u64, got: &Got, over: &AtomicBool) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut visitor = Visitor::default();
    while !over.load(Ordering::Relaxed) {
        let mut page = entry.to_owned();
        for _ in 0..PAGES_OF_A_VISIT {
            let Some((at, html)) = visitor.get(&page, got) else { break };
            for image in addresses(&html, b" src=\"", &at) {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                visitor.get(&image, got);
            }
            let links = addresses(&html, b" href=\"", &at);
            let Some(next) = random.choice(links) else { break };
            page = next;
        }
    }
}

impl Visitor {
    /// Gets a document, through its redirects, and says where it is.
    fn get(&mut self, url: &str, got: &Got) -> Option<(String, Vec<u8>)> {
        let mut url = url.to_owned();
        for _ in 0..REDIRECTS_MAX {
            match self.ask(&url) {
                Ok(Reply { status: 200, body, .. }) => {
                    got.documents.fetch_add(1, Ordering::Relaxed);
                    return Some((url, body));
                }
                Ok(Reply { status: 307, location: Some(location), .. }) => {
                    got.redirects.fetch_add(1, Ordering::Relaxed);
                    url = location;
                }
                Ok(_) | Err(_) => break,
            }
        }
        got.failures.fetch_add(1, Ordering::Relaxed);
        None
    }

    fn ask(&mut self, url: &str) -> Result<Reply> {
        let rest = url.strip_prefix("http://").context("another scheme")?;
        let (host, path) = rest.split_at(rest.find('/').context("no path")?);
        // A kept connection may have ended.
        if let Some(mut kept) = self.connections.remove(host)
            && let Ok(reply) = Reply::get(&mut kept, host, path)
        {
            self.connections.insert(host.to_owned(), kept);
            return Ok(reply);
        }
        let address = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
        let fresh = TcpStream::connect(address)?;
        fresh.set_nodelay(true)?;
        fresh.set_read_timeout(Some(PATIENCE))?;
        let mut fresh = BufReader::new(fresh);
        let reply = Reply::get(&mut fresh, host, path)?;
        self.connections.insert(host.to_owned(), fresh);
        Ok(reply)
    }
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
const REDIRECTS_MAX: usize = 5;
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
