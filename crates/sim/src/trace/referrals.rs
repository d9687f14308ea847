//! Who sent clients where: the field `Referer` of logs in the combined format.
//!
//! A log does not name its own site. The host that sent most clients is taken for it: pages send clients for all that they embed.

use baton_dispatch::target_hash;
use hashbrown::HashMap;

use super::TargetId;

/// A request, and the document that led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Referral {
    /// The target that was requested.
    pub to: TargetId,
    /// The page of the same site whose link it was; none if the client came from elsewhere.
    pub from: Option<TargetId>,
    /// Whether pages embed such things, by the name of the target.
    pub is_embedded: bool,
}

/// What has been read so far, in the order of the log.
#[derive(Debug, Default)]
pub(super) struct Referrals {
    requests: Vec<(TargetId, bool, Option<Referrer>)>,
    hosts: HashMap<u64, u64, foldhash::fast::FixedState>,
}

/// A URL, as hashes of its host and its path.
#[derive(Clone, Copy, Debug)]
struct Referrer {
    host: u64,
    path: u64,
}

impl Referrals {
    /// A request for a path, with its referrer's URL, if the log has one, and the path in that.
    pub(super) fn take(&mut self, to: TargetId, path: &[u8], referrer: Option<(&[u8], &[u8])>) {
        let referrer = referrer.and_then(|(url, path)| {
            let host = host_of(url)?;
            Some(Referrer { host: target_hash(host), path: target_hash(path) })
        });
        if let Some(referrer) = referrer {
            *self.hosts.entry(referrer.host).or_default() += 1;
        }
        self.requests.push((to, is_embedded(path), referrer));
    }

    /// All requests. `known` has the targets by the hashes of their paths.
    pub(super) fn resolve(self, known: impl Fn(u64) -> Option<TargetId>) -> Vec<Referral> {
        let site = self.hosts.iter().max_by_key(|(host, count)| (**count, **host)).map(|(host, _)| *host);
        let from = |referrer: Referrer| known(referrer.path).filter(|_| Some(referrer.host) == site);
        let requests = self.requests.into_iter();
        let resolved = requests.map(|(to, is_embedded, referrer)| Referral {
            to,
            from: referrer.and_then(from),
            is_embedded,
        });
        resolved.collect()
    }
}

/// The host of a URL, without its port.
fn host_of(url: &[u8]) -> Option<&[u8]> {
    let start = memchr::memmem::find(url, b"://")? + 3;
    let rest = &url[start..];
    let end = memchr::memchr3(b'/', b':', b'?', rest).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|host| !host.is_empty())
}

/// Whether pages embed what has such a name.
fn is_embedded(path: &[u8]) -> bool {
    let extension = path.rsplit(|&byte| byte == b'.').next().unwrap_or_default();
    EMBEDDED.iter().any(|known| known.eq_ignore_ascii_case(extension))
}

const EMBEDDED: [&[u8]; 14] = [
    b"css", b"js", b"mjs", b"gif", b"jpg", b"jpeg", b"png", b"webp", b"avif", b"svg", b"ico", b"woff",
    b"woff2", b"ttf",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_that_sends_most_is_the_site() {
        let mut referrals = Referrals::default();
        let (page, image) = (0, 1);
        let came: [Option<(&[u8], &[u8])>; 5] = [
            None,
            Some((b"http://site.example/page", b"/page")),
            Some((b"https://site.example:8443/page?x", b"/page")),
            Some((b"http://search.example/page", b"/page")),
            Some((b"http://site.example/gone", b"/gone")),
        ];
        came.into_iter().for_each(|referrer| referrals.take(image, b"/a.PNG", referrer));
        let known = |hash| (hash == target_hash(b"/page")).then_some(page);
        let referrals = referrals.resolve(known);
        assert!(referrals.iter().all(|referral| referral.is_embedded));
        let from: Vec<_> = referrals.iter().map(|referral| referral.from).collect();
        assert_eq!(from, [None, Some(page), Some(page), None, None]);
    }

    #[test]
    fn hosts_are_found_in_urls() {
        let cases: [(&[u8], Option<&[u8]>); 6] = [
            (b"http://a.example/b", Some(b"a.example")),
            (b"http://a.example:80", Some(b"a.example")),
            (b"http://a.example?b", Some(b"a.example")),
            (b"-", None),
            (b"http://", None),
            (b"", None),
        ];
        for (url, expected) in cases {
            assert_eq!(host_of(url), expected);
        }
    }
}
