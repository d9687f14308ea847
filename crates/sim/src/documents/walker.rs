//! A client of the published benchmark: it walks from an entry point along links, and begins again.
//!
//! A walk has one to 25 pages. A page's embedded objects are requested four at a time. Within a walk nothing is requested twice.
//! A client that a server turns away waits a second, then two, then four.

use hashbrown::HashMap;

use super::site::DocumentSite;

/// A client.
#[derive(Clone, Debug, Default)]
pub(super) struct Walker {
    /// What it has requested in this walk, and when the server looked up where its links lead.
    seen: HashMap<u32, u64, foldhash::fast::FixedState>,
    page: u32,
    steps_left: u32,
    to_fetch: Vec<u32>,
    in_flight: u32,
    refusals: u32,
}

/// What a client does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Requests an object of its page.
    Fetch {
        object: u32,
        /// The moment whose links it follows.
        as_of_ns: u64,
    },
    /// Follows a link to a page that it has not seen.
    Visit { page: u32, as_of_ns: u64 },
    /// Waits for what it has requested.
    Wait,
    /// The walk is over.
    Begin,
}

/// The longest wait of a client that is turned away: 2^6 seconds.
const REFUSALS_MAX: u32 = 6;

impl Walker {
    /// Begins a walk at a page, which it has requested.
    pub(super) fn begin(&mut self, page: u32, steps: u32) {
        self.seen.clear();
        (self.page, self.steps_left, self.in_flight) = (page, steps, 0);
    }

    /// Has the page that it visits, with links of a moment.
    pub(super) fn handle_page(&mut self, site: &DocumentSite, page: u32, as_of_ns: u64) {
        self.seen.insert(page, as_of_ns);
        self.refusals = 0;
        self.look_at(site, page);
    }

    /// Has an embedded object.
    pub(super) fn handle_object(&mut self) {
        self.in_flight -= 1;
        self.refusals = 0;
    }

    /// Is turned away; says how long it waits before it asks again, in seconds.
    pub(super) fn handle_refusal(&mut self) -> u64 {
        let wait_s = 1 << self.refusals;
        self.refusals = (self.refusals + 1).min(REFUSALS_MAX);
        wait_s
    }

    /// The next step; to be asked until it waits or begins again.
    pub(super) fn next(&mut self, site: &DocumentSite, helpers: u32, random: &mut fastrand::Rng) -> Step {
        loop {
            let as_of_ns = self.seen.get(&self.page).copied();
            // The page itself is on its way.
            let Some(as_of_ns) = as_of_ns else { return Step::Wait };
            if self.in_flight < helpers
                && let Some(object) = self.to_fetch.pop()
            {
                self.in_flight += 1;
                self.seen.insert(object, as_of_ns);
                return Step::Fetch { object, as_of_ns };
            }
            if self.in_flight > 0 {
                return Step::Wait;
            }
            let links = &site.documents[self.page as usize].links;
            self.steps_left = self.steps_left.saturating_sub(1);
            if self.steps_left == 0 || links.is_empty() {
                return Step::Begin;
            }
            let page = links[random.usize(..links.len())];
            self.page = page;
            if !self.seen.contains_key(&page) {
                return Step::Visit { page, as_of_ns };
            }
            self.look_at(site, page);
        }
    }

    /// How many answers it waits for.
    #[cfg(test)]
    pub(super) fn waits_for(&self) -> u32 {
        if self.seen.contains_key(&self.page) { self.in_flight } else { 1 }
    }

    fn look_at(&mut self, site: &DocumentSite, page: u32) {
        let embedded = site.documents[page as usize].embedded.iter().copied();
        self.to_fetch.clear();
        self.to_fetch.extend(embedded.filter(|object| !self.seen.contains_key(object)));
    }
}

#[cfg(test)]
mod tests {
    use super::super::made::SiteParameters;
    use super::*;

    /// Follows a client through whole walks: nothing twice, no more than the helpers at a time, all that pages embed.
    #[test]
    fn walks_request_everything_once() {
        let site = SiteParameters { pages: 6, links: 3, images: 3, shared: 2, ..SiteParameters::default() }
            .site("", 1);
        let mut random = fastrand::Rng::with_seed(1);
        let mut walker = Walker::default();
        for walk in 1..50 {
            let mut requested = vec![0];
            walker.begin(0, walk);
            let mut pages = 1;
            walker.handle_page(&site, 0, walk.into());
            let mut in_flight = 0;
            loop {
                match walker.next(&site, 2, &mut random) {
                    Step::Fetch { object, as_of_ns } => {
                        requested.push(object);
                        in_flight += 1;
                        assert!(in_flight <= 2 && as_of_ns == u64::from(walk));
                    }
                    Step::Visit { page, .. } => {
                        assert_eq!(in_flight, 0);
                        pages += 1;
                        requested.push(page);
                        assert_eq!(walker.next(&site, 2, &mut random), Step::Wait);
                        walker.handle_page(&site, page, walk.into());
                    }
                    Step::Wait => {
                        assert!(in_flight > 0);
                        walker.handle_object();
                        in_flight -= 1;
                    }
                    Step::Begin => break,
                }
            }
            let count = requested.len();
            assert!(pages <= walk);
            for &page in requested.iter().filter(|&&id| id < 6) {
                let embedded = &site.documents[page as usize].embedded;
                assert!(embedded.iter().all(|object| requested.contains(object)));
            }
            requested.sort_unstable();
            requested.dedup();
            assert_eq!(requested.len(), count, "something was requested twice");
        }
    }

    #[test]
    fn clients_that_are_turned_away_wait_longer_and_longer() {
        let mut walker = Walker::default();
        let waits: Vec<u64> = (0..8).map(|_| walker.handle_refusal()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 64]);
        walker.begin(0, 1);
        walker.handle_page(&SiteParameters::default().site("", 1), 0, 0);
        assert_eq!(walker.handle_refusal(), 1);
    }
}
