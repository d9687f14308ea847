//! A trace whose requests for the same target come in bursts, as those of real logs do.

use std::str::FromStr;

use super::{Trace, TraceRequest};

/// How requests for a target come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// Requests of a burst, above 0.
    pub length: u32,
    /// The requests of the whole trace among which those of a burst are, above 0.
    pub within: u32,
}

impl FromStr for Bursts {
    type Err = String;

    /// `20,1000`: twenty requests for a target among a thousand.
    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once(',').and_then(|(length, within)| {
            Some(Self { length: length.parse().ok()?, within: within.parse().ok()? })
        });
        let possible = numbers.filter(|bursts| bursts.length > 0 && bursts.within > 0);
        possible.ok_or_else(|| format!("{text:?} are no bursts; expected LENGTH,WITHIN like 20,1000"))
    }
}

/// Lets each target's requests come in bursts, from where the first of each burst was. How often which target is requested
/// stays as it is.
#[must_use]
pub fn in_bursts(trace: &Trace, bursts: Bursts, seed: u64) -> Trace {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut known = vec![(0, 0); trace.targets().len()];
    let place = |(at, request): (usize, &TraceRequest)| {
        let (begun_at, left) = &mut known[request.target() as usize];
        if *left == 0 {
            (*begun_at, *left) = (at as u64, bursts.length);
        }
        *left -= 1;
        (*begun_at + random.u64(..u64::from(bursts.within)), *request)
    };
    let mut placed: Vec<_> = trace.requests().iter().enumerate().map(place).collect();
    placed.sort_by_key(|(at, _)| *at);
    let name = format!("{} in bursts of {}", trace.name, bursts.length);
    Trace::new(name, trace.targets().to_vec(), placed.into_iter().map(|(_, request)| request).collect())
}

#[cfg(test)]
mod tests {
    use super::super::Zipf;
    use super::*;

    #[test]
    fn bursts_change_when_targets_are_requested_but_not_how_often() {
        let even = Zipf { targets: 2_000, alpha: 0.7, kb: 8.0, requests: 20_000 }.trace(1);
        let bursts = in_bursts(&even, "10,50".parse().unwrap(), 1);
        let counts = |trace: &Trace| {
            let mut counts = vec![0; trace.targets().len()];
            trace.requests().iter().for_each(|request| counts[request.target() as usize] += 1);
            counts
        };
        assert_eq!(counts(&even), counts(&bursts));
        let repeats = |trace: &Trace| {
            let all = trace.requests();
            all.windows(51)
                .filter(|some| some[..50].iter().any(|one| one.target() == some[50].target()))
                .count()
        };
        assert!(repeats(&bursts) > 2 * repeats(&even), "{} and {}", repeats(&bursts), repeats(&even));
    }

    #[test]
    fn bursts_are_read_and_refused() {
        assert_eq!("20,1000".parse(), Ok(Bursts { length: 20, within: 1_000 }));
        for wrong in ["", "20", "0,5", "5,0", "a,b", "1,2,3"] {
            assert!(wrong.parse::<Bursts>().is_err(), "{wrong}");
        }
    }
}
