//! The site of an access log: its referrers tell who links to whom, and how often clients follow.

use std::fmt;

use hashbrown::HashSet;

use super::site::{Document, DocumentSite};
use crate::trace::{Referral, Trace};

/// No page of a log was asked for without a referrer: nothing tells where walks begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoEntryPoint;

impl fmt::Display for NoEntryPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no page to begin a walk at: none was asked for without a referrer of the same site")
    }
}

impl std::error::Error for NoEntryPoint {}

/// The share of all arrivals that makes a page a well-known entry point.
const ENTRY_SHARE: f64 = 0.01;

/// Makes the site of a log.
///
/// A page to which clients come from elsewhere is a well-known entry point if a hundredth of all arrivals are there. Pages embed
/// the images, styles and scripts that clients have requested for them. What an application makes stays at home.
///
/// # Errors
/// Walks cannot begin anywhere.
pub fn site_of_log(trace: &Trace, referrals: &[Referral]) -> Result<DocumentSite, NoEntryPoint> {
    let targets = trace.targets().iter();
    let mut documents: Vec<Document> = targets
        .map(|target| Document { bytes: target.bytes, stays: target.dynamic, ..Document::default() })
        .collect();
    let mut arrivals = vec![0_u32; documents.len()];
    let mut known: HashSet<(u32, u32), foldhash::fast::FixedState> = HashSet::default();
    for &Referral { to, from, is_embedded } in referrals {
        match from {
            Some(from) if from == to => {}
            Some(from) if is_embedded => {
                let is_new = known.insert((from, to));
                documents[from as usize].embedded.extend(is_new.then_some(to));
            }
            Some(from) => documents[from as usize].links.push(to),
            None if !is_embedded => arrivals[to as usize] += 1,
            None => {}
        }
    }
    let all: u32 = arrivals.iter().sum();
    let least = (f64::from(all) * ENTRY_SHARE).ceil().max(1.0) as u32;
    let most = arrivals.iter().copied().max().unwrap_or(0).max(1);
    let mut starts = Vec::new();
    for (page, &count) in (0..).zip(&arrivals) {
        // Of a log whose arrivals are all rare, the most frequent ones.
        if count >= least.min(most) {
            documents[page as usize].stays = true;
            starts.extend(std::iter::repeat_n(page, count as usize));
        }
    }
    if starts.is_empty() {
        return Err(NoEntryPoint);
    }
    Ok(DocumentSite { name: trace.name.clone(), documents, starts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{TargetFacts, TraceRequest};

    /// A trace of so many targets, the last of which is dynamic.
    fn trace(targets: u32) -> Trace {
        let facts = |id| TargetFacts { hash: id, bytes: 100, dynamic: id == u64::from(targets) - 1 };
        Trace::new("log".into(), (0..u64::from(targets)).map(facts).collect(), vec![TraceRequest::whole(0)])
    }

    fn referral(from: Option<u32>, to: u32) -> Referral {
        Referral { to, from, is_embedded: to == 3 }
    }

    #[test]
    fn referrers_make_links() {
        let mut referrals = vec![referral(None, 0); 150];
        referrals.extend([referral(None, 1), referral(None, 3), referral(None, 2), referral(None, 2)]);
        referrals.extend(
            [(0, 1), (0, 1), (0, 2), (0, 3), (0, 3), (1, 3), (1, 1), (1, 4)]
                .map(|(from, to)| referral(Some(from), to)),
        );
        let site = site_of_log(&trace(5), &referrals).unwrap();
        let [index, page, rare, image, program] = &site.documents[..] else { panic!("five documents") };
        assert_eq!(
            (&index.links[..], &index.embedded[..]),
            (&[1, 1, 2][..], &[3][..]),
            "as often as followed"
        );
        assert_eq!((&page.links[..], &page.embedded[..]), (&[4][..], &[3][..]), "no link to itself");
        // Of 153 arrivals two are one in a hundred, and one is not.
        let stays = [index, page, rare, image, program].map(|document| document.stays);
        assert_eq!(stays, [true, false, true, false, true]);
        assert_eq!((site.starts.len(), site.entry_points()), (152, vec![0, 2]));
        assert_eq!(site.facts().links, 5);
    }

    #[test]
    fn walks_have_to_begin_somewhere() {
        assert_eq!(site_of_log(&trace(4), &[referral(Some(0), 1), referral(None, 3)]), Err(NoEntryPoint));
        assert_eq!(site_of_log(&trace(4), &[]), Err(NoEntryPoint));
    }
}
