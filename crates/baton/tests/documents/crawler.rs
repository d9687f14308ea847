//! A client that follows links and redirects as a browser does, and knows every address that it was ever given.

use std::collections::BTreeSet;

use baton_dcws::links::{Page, PageAddress};
use baton_dcws::{Origin, encode};

use crate::common::client::Response;
use crate::servers::{get, split};

/// Addresses that were given out.
#[derive(Default)]
pub(crate) struct Crawler {
    pub(crate) seen: BTreeSet<String>,
}

impl Crawler {
    /// Reads a page and gets everything that it shows. Says which addresses could not be had.
    pub(crate) fn visit(&mut self, page: &str) -> Vec<String> {
        let mut dead = Vec::new();
        let Some((at, response)) = self.follow(page) else { return vec![page.to_owned()] };
        for link in links(&at, &response) {
            if self.follow(&link).is_none() {
                dead.push(link);
            }
        }
        dead
    }

    /// Every address that was ever given out and cannot be had.
    pub(crate) fn dead(&mut self) -> Vec<String> {
        let seen: Vec<_> = self.seen.iter().cloned().collect();
        seen.into_iter().filter(|url| self.follow(url).is_none()).collect()
    }

    /// Gets a URL through its redirects: where it is in the end, and what it has.
    pub(crate) fn follow(&mut self, url: &str) -> Option<(String, Response)> {
        let mut url = url.to_owned();
        for _ in 0..REDIRECTS_MAX {
            self.seen.insert(url.clone());
            let response = std::panic::catch_unwind(|| get(&url, "")).ok()?;
            match response.status {
                200 => return Some((url, response)),
                307 => {
                    assert_eq!(response.field("cache-control"), Some("no-store"), "{url}");
                    let location = response.field("location").expect("a location");
                    assert!(location.starts_with("http://"), "{location}");
                    location.clone_into(&mut url);
                }
                _ => return None,
            }
        }
        None
    }
}

/// The images and pages that a page of the site links to, as absolute URLs.
pub(crate) fn links(at: &str, page: &Response) -> Vec<String> {
    let (authority, path) = split(at);
    let origin: Origin = format!("http://{authority}").parse().expect("an origin");
    let path = path.trim_start_matches('/');
    let read = Page::read(&page.body, &PageAddress { origin: &origin, path: path.as_bytes() });
    let own = read.links.iter().map(|link| format!("{origin}/{}", encode(&link.document)));
    // Those to other servers are absolute.
    let text = String::from_utf8_lossy(&page.body);
    let others = text.match_indices("http://").map(|(start, _)| {
        let rest = &text[start..];
        rest[..rest.find(['"', '\'', '>', ' ']).unwrap_or(rest.len())].to_owned()
    });
    own.chain(others).collect()
}

/// As browsers have it.
const REDIRECTS_MAX: usize = 20;
