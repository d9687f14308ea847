//! Whether a server gave files of every size their due: the three criteria of Harji, *Performance Comparison of
//! Uniprocessor and Multiprocessor Web Server Architectures* (2010), section 3.3.
//!
//! A server can gain by letting requests for large files time out: small ones are asked for more often and stay in
//! memory. So a measurement counts only if
//! 1. at most 10 % of all requests timed out;
//! 2. of each size at most 5 % of each client's requests, and 2 % of all clients' together;
//! 3. of each size at most the mean of all sizes and 5 points for each client, 2 points for all together.
//!
//! Requests that the server had not read are not counted: other things decided on them.

use std::fmt;

use super::sizes::{SizeCount, SizeCounts};

/// A criterion that is broken.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfair {
    /// Size of the files; `None`: all sizes.
    pub bytes: Option<u64>,
    /// The client, from 0; `None`: all together.
    pub client: Option<usize>,
    /// Timeouts in per cent of requests.
    pub percent: f64,
    /// What they exceed.
    pub limit: TimeoutLimit,
}

/// How many requests may time out, in per cent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TimeoutLimit {
    /// So many.
    Fixed(f64),
    /// Not many more than of all sizes.
    Mean(f64),
}

const OVERALL_PERCENT: f64 = 10.0;
const CLIENT_PERCENT: f64 = 5.0;
const TOGETHER_PERCENT: f64 = 2.0;

/// The criteria that these counts, one for each client, break.
pub(super) fn judge(clients: &[SizeCounts]) -> Vec<Unfair> {
    let together = SizeCounts::sum(clients);
    let overall = together.total();
    let mut unfair = Vec::new();
    if breaks(overall, OVERALL_PERCENT) {
        let limit = TimeoutLimit::Fixed(OVERALL_PERCENT);
        unfair.push(Unfair { bytes: None, client: None, percent: percent(overall), limit });
    }
    let each = clients.iter().enumerate().map(|(client, counts)| (Some(client), counts, CLIENT_PERCENT));
    for (client, counts, most) in each.chain([(None, &together, TOGETHER_PERCENT)]) {
        let mean = percent(counts.total());
        for (&bytes, &count) in &counts.0 {
            let limits = [(TimeoutLimit::Fixed(most), most), (TimeoutLimit::Mean(mean), mean + most)];
            for (limit, _) in limits.into_iter().filter(|(_, most)| breaks(count, *most)) {
                unfair.push(Unfair { bytes: Some(bytes), client, percent: percent(count), limit });
            }
        }
    }
    unfair
}

/// One timeout alone breaks nothing: in a short run, a rare size has too few requests for that.
fn breaks(count: SizeCount, limit_percent: f64) -> bool {
    count.timeouts > 1 && percent(count) > limit_percent
}

fn percent(count: SizeCount) -> f64 {
    100.0 * count.timeouts as f64 / count.requests().max(1) as f64
}

impl fmt::Display for Unfair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = self.client.map_or("all".to_owned(), |client| format!("client {client}'s"));
        let files = self.bytes.map_or(String::new(), |bytes| format!(" for files of {bytes} bytes"));
        write!(f, "{:.1} % of {whose} requests{files} timed out, ", self.percent)?;
        match self.limit {
            TimeoutLimit::Fixed(limit) => write!(f, "more than {limit} %"),
            TimeoutLimit::Mean(mean) => write!(f, "against {mean:.1} % of all sizes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(counts: &[(u64, u64, u64)]) -> SizeCounts {
        let count = |&(bytes, requests, timeouts): &(u64, u64, u64)| {
            (bytes, SizeCount { answered: requests - timeouts, timeouts })
        };
        SizeCounts(counts.iter().map(count).collect())
    }

    #[test]
    fn a_server_that_answers_all_is_fair() {
        assert_eq!(judge(&[client(&[(100, 1000, 0), (900_000, 10, 0)])]), []);
        assert_eq!(judge(&[]), []);
    }

    #[test]
    fn limits_are_reached_without_being_broken() {
        // Both sizes alike: 2 % together, 4 % of one of two clients.
        let slow = client(&[(100, 1000, 40), (5000, 1000, 40)]);
        let fast = client(&[(100, 1000, 0), (5000, 1000, 0)]);
        assert_eq!(judge(&[slow, fast]), []);
    }

    #[test]
    fn each_criterion_has_its_name() {
        // Everything is slow alike: no size is above the mean.
        let all = judge(&[client(&[(1, 1000, 110), (2, 1000, 110)])]);
        let unfair =
            |bytes, client, limit| Unfair { bytes, client, percent: 11.0, limit: TimeoutLimit::Fixed(limit) };
        assert_eq!(all[0], unfair(None, None, OVERALL_PERCENT));
        assert!(!all.iter().any(|unfair| matches!(unfair.limit, TimeoutLimit::Mean(_))));
        assert!(all.contains(&unfair(Some(2), Some(0), CLIENT_PERCENT)));

        // One size starves, of one client of ten: too rare to show in the sum, and to be 5 points above its mean.
        let mut clients = vec![client(&[(1, 10_000, 0), (2, 100, 0)]); 10];
        clients[3] = client(&[(1, 10_000, 0), (2, 100, 10)]);
        let unfair = judge(&clients);
        let whose = |unfair: &Unfair| (unfair.bytes, unfair.client);
        assert_eq!(unfair.iter().map(whose).collect::<Vec<_>>(), [(Some(2), Some(3)); 2], "{unfair:?}");
        let words: Vec<String> = unfair.iter().map(ToString::to_string).collect();
        assert_eq!(words[0], "10.0 % of client 3's requests for files of 2 bytes timed out, more than 5 %");
        assert!(words[1].ends_with("timed out, against 0.1 % of all sizes"), "{words:?}");
    }

    #[test]
    fn one_timeout_alone_is_no_verdict() {
        assert_eq!(judge(&[client(&[(1, 1000, 0), (2, 3, 1)])]), []);
        assert!(!judge(&[client(&[(1, 1000, 0), (2, 3, 2)])]).is_empty());
    }
}
