//! Links of style sheets that are documents of their own.

use super::css;
use super::link::Link;
use super::page::PageAddress;
use super::reference;

/// The links of a style sheet. It is not rewritten; they decide which documents stay at home.
pub fn of_style_sheet(text: &[u8], address: &PageAddress<'_>) -> Vec<Link> {
    css::urls(text)
        .into_iter()
        .filter_map(|url| {
            let found = reference::resolve(&text[url.place.clone()], address.origin, address.folder())?;
            let place = url.place.start..url.place.start + found.path_len;
            Some(Link { place, document: found.document, used: url.used })
        })
        .collect()
}
