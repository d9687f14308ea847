//! A trace with a few artificial targets of high frequency, as in section 3.3.2 of the source.

use std::str::FromStr;

use super::{TargetFacts, TargetId, Trace, TraceRequest};

/// The targets to add.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HotTargets {
    /// How many, above 0.
    pub count: u32,
    /// Their share in the requests together, 0 to 1.
    pub share: f64,
    /// Size of each in bytes.
    pub bytes: u64,
}

impl FromStr for HotTargets {
    type Err = String;

    /// `45%` or `45%,4,40`: their share, how many, and the size of each in kilobytes.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} are no hot targets; expected SHARE%,COUNT,KB like 45%,4,40");
        let mut parts = text.split(',');
        let mut number = |default: f64, least: f64, most: f64| match parts.next() {
            None => Some(default),
            Some(part) => {
                part.trim_end_matches('%').parse().ok().filter(|number| (least..=most).contains(number))
            }
        };
        let percent = number(0.0, 0.0, 100.0).ok_or_else(wrong)?;
        let count = number(4.0, 1.0, 1000.0).ok_or_else(wrong)?;
        let kb = number(40.0, 0.0, 1e6).ok_or_else(wrong)?;
        match parts.next() {
            None => Ok(Self { count: count as u32, share: percent / 100.0, bytes: (kb * 1024.0) as u64 }),
            Some(_) => Err(wrong()),
        }
    }
}

/// Replaces random requests of a trace by hot targets; its length stays the same.
#[must_use]
pub fn with_hot_targets(trace: &Trace, hot: HotTargets, seed: u64) -> Trace {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut targets = trace.targets().to_vec();
    let first = targets.len() as TargetId;
    targets.extend((0..hot.count).map(|number| TargetFacts {
        hash: baton_dispatch::target_hash(format!("/hot/{number}").as_bytes()),
        bytes: hot.bytes,
        dynamic: false,
    }));
    let requests = trace.requests().iter().map(|request| {
        if random.f64() < hot.share { TraceRequest::whole(first + random.u32(..hot.count)) } else { *request }
    });
    let name = format!("{} + {:.0} % hot", trace.name, 100.0 * hot.share);
    Trace::new(name, targets, requests.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_targets_are_read_and_refused() {
        assert_eq!("45%".parse(), Ok(HotTargets { count: 4, share: 0.45, bytes: 40 << 10 }));
        assert_eq!("5,2,0.5".parse(), Ok(HotTargets { count: 2, share: 0.05, bytes: 512 }));
        for wrong in ["", "101%", "5,0", "5,1,1,1", "x"] {
            assert!(wrong.parse::<HotTargets>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn hot_targets_get_their_share() {
        let cold = TargetFacts { hash: 1, bytes: 1, dynamic: false };
        let trace = Trace::new("t".into(), vec![cold], vec![TraceRequest::whole(0); 10_000]);
        let hot = HotTargets { count: 2, share: 0.3, bytes: 20_480 };
        let counts = with_hot_targets(&trace, hot, 1).counts();
        assert_eq!(counts.iter().sum::<u64>(), 10_000);
        assert!(counts[1..].iter().all(|count| (1350..1650).contains(count)), "{counts:?}");
    }
}
