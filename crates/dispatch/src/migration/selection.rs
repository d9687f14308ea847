//! Which document migrates: the published algorithm, "Document selection for migration".

use super::DocumentId;
use super::graph::Candidate;

/// Selects one of the documents at home that are no entry points (steps i and ii).
///
/// `threshold` is T. Steps: those whose load is T or more, T being halved until there is one (iii); of these the ones with the
/// fewest links from documents away, whose copies would have to be fetched again for the new link (iv); of these the ones with
/// the fewest links (v); of these the one that was inserted first. None if no document has any load: the published step
/// goes on to T = 0 and then lends documents without requests, which takes no load away.
pub(super) fn select(
    candidates: impl Iterator<Item = Candidate> + Clone,
    threshold: u64,
) -> Option<DocumentId> {
    let heaviest = candidates.clone().map(|candidate| candidate.load).max()?;
    let mut threshold = threshold.max(1);
    while threshold > heaviest {
        threshold /= 2;
    }
    candidates
        .filter(|candidate| threshold > 0 && candidate.load >= threshold)
        .min_by_key(|candidate| (candidate.lent_links_from, candidate.links_to, candidate.document))
        .map(|candidate| candidate.document)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A selection among (load, links from documents away, links), as the number of the one selected.
    fn selected(threshold: u64, candidates: &[(u64, u32, usize)]) -> Option<u32> {
        let candidates = (0..).map(DocumentId).zip(candidates).map(|(document, &(load, away, links_to))| {
            Candidate { document, load, lent_links_from: away, links_to }
        });
        select(candidates, threshold).map(|document| document.0)
    }

    #[test]
    fn the_threshold_is_met_exactly() {
        assert_eq!(selected(10, &[(9, 0, 0), (10, 5, 5)]), Some(1));
        assert_eq!(selected(9, &[(9, 0, 0), (10, 5, 5)]), Some(0));
    }

    #[test]
    fn the_threshold_is_halved_until_a_document_has_it() {
        // 100, 50, 25, 12: the first two have it, not only the heaviest.
        assert_eq!(selected(100, &[(13, 1, 0), (12, 0, 0), (11, 0, 0)]), Some(1));
        assert_eq!(selected(100, &[(1, 0, 0)]), Some(0));
    }

    #[test]
    fn links_from_documents_away_decide_before_links() {
        assert_eq!(selected(5, &[(50, 1, 0), (5, 0, 9), (6, 0, 8)]), Some(2));
        assert_eq!(selected(5, &[(50, 1, 0), (5, 1, 0)]), Some(0), "the first of equals");
    }

    #[test]
    fn nothing_is_selected_where_nothing_is_asked_for() {
        assert_eq!(selected(10, &[]), None);
        assert_eq!(selected(10, &[(0, 0, 0), (0, 0, 0)]), None);
        assert_eq!(selected(0, &[(0, 0, 0), (1, 0, 0)]), Some(1));
    }
}
