//! The fields of a reply that follow from path and configuration, not from the file's contents.

use std::sync::Arc;

use baton_compress::Rules;
use baton_http::Coding;

use crate::resolve::Target;
use crate::tree::{CACHE_CONTROL, Tree};
use crate::tree_config::{CacheRule, TreeConfig};

/// Fields of a reply. Names with equal presentation and inode share one reply.
#[derive(Debug)]
pub(crate) struct Presentation {
    pub(crate) media_type: String,
    pub(crate) coding: Coding,
    /// How the file is coded on the fly, if it is.
    pub(crate) compress: Option<Arc<Rules>>,
    /// Complete lines, each with its CRLF.
    pub(crate) lines: Vec<u8>,
    pub(crate) server_header: bool,
}

impl Presentation {
    pub(crate) fn of(tree: &Tree, target: &Target) -> Self {
        let config = tree.config();
        let path = target.plain_path();
        let media_type = config.media_types.of(path).to_owned();
        let mut lines = Vec::with_capacity(256);
        let mut line = |name: &str, value: &[u8]| {
            for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                lines.extend_from_slice(part);
            }
        };
        line("Content-Type", media_type.as_bytes());
        if target.coding != Coding::Identity {
            line("Content-Encoding", target.coding.token().as_bytes());
        }
        let absolute = [b"/", path].concat();
        let rule = config
            .cache_control
            .iter()
            .find(|rule| rule.is_about(&absolute, &media_type))
            .filter(|_| !config.headers.drops(CACHE_CONTROL.as_bytes()));
        let compress = config.compress.as_ref().filter(|rules| {
            target.coding == Coding::Identity
                && rules.covers(media_type.as_bytes())
                && !forbids_transformation(config, rule)
        });
        // Also on files that have no such copy: one may come (RFC 9110, 12.5.5).
        let is_coded_for_some = !config.precompressed.is_empty() || compress.is_some();
        let added = config.headers.added().filter(|(name, _)| is_vary(name));
        let added = added.filter_map(|(_, member)| member.fixed());
        let varies: Vec<_> =
            is_coded_for_some.then_some("Accept-Encoding").into_iter().chain(added).collect();
        if !varies.is_empty() {
            line("Vary", varies.join(", ").as_bytes());
        }
        if let Some(rule) = rule {
            line(CACHE_CONTROL, rule.value.as_bytes());
        }
        let keeps = |name: &str| rule.is_some() && name.eq_ignore_ascii_case(CACHE_CONTROL);
        for (name, value) in config.headers.fields_beside(keeps).filter(|(name, _)| !is_vary(name)) {
            // What differs from request to request is not kept with the file.
            if let Some(value) = value.fixed() {
                line(name, value.as_bytes());
            }
        }
        let compress = compress.map(Arc::clone);
        Self { media_type, coding: target.coding, compress, lines, server_header: config.server_header }
    }
}

/// Whether a field is the list that has one line, however many have a say in it.
fn is_vary(name: &str) -> bool {
    name.eq_ignore_ascii_case("Vary")
}

/// Whether `Cache-Control` says that the bytes must reach the client as they are.
fn forbids_transformation(config: &TreeConfig, rule: Option<&CacheRule>) -> bool {
    let added = config.headers.all().filter(|(name, _)| name.eq_ignore_ascii_case(CACHE_CONTROL));
    let mut values =
        rule.map(|rule| rule.value.as_str()).into_iter().chain(added.filter_map(|(_, value)| value.fixed()));
    values.any(|value| baton_http::response::says_no_transform(value.as_bytes()))
}
