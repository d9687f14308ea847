//! A trace by Zipf's law: the target of rank *i* has requests in proportion to *i* to the power of *-alpha*.

use std::fmt;
use std::str::FromStr;

use super::synthetic::{draw, spread_sizes};
use super::{TargetFacts, Trace};

/// Parameters of a Zipf trace. As text: `targets=10000,alpha=0.9,kb=12,requests=1000000`, each optional.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zipf {
    /// Number of targets, 1 to 2^31 - 1.
    pub targets: u32,
    /// The exponent, 0 (all alike) to 5; of web servers between 0.6 and 1.1.
    pub alpha: f64,
    /// Mean size of a target in kilobytes, above 0.
    pub kb: f64,
    /// Number of requests.
    pub requests: u64,
}

impl Default for Zipf {
    fn default() -> Self {
        Self { targets: 40_000, alpha: 0.9, kb: 16.0, requests: 1_000_000 }
    }
}

/// An error in the parameters of a Zipf trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZipfError(String);

impl fmt::Display for ZipfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; expected like targets=40000,alpha=0.9,kb=16,requests=1000000", self.0)
    }
}

impl std::error::Error for ZipfError {}

impl FromStr for Zipf {
    type Err = ZipfError;

    fn from_str(text: &str) -> Result<Self, ZipfError> {
        let mut zipf = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (key, value) =
                part.split_once('=').ok_or_else(|| ZipfError(format!("{part:?} has no value")))?;
            let wrong = || ZipfError(format!("{key} cannot be {value:?}"));
            let number: f64 = value.parse().map_err(|_| wrong())?;
            let (least, most) = match key {
                "targets" => (1.0, f64::from(super::Request::TARGETS_MAX - 1)),
                "alpha" => (0.0, 5.0),
                "kb" => (0.001, 1e9),
                "requests" => (1.0, REQUESTS_MAX),
                _ => return Err(ZipfError(format!("there is no {key:?}"))),
            };
            if !(least..=most).contains(&number) {
                return Err(wrong());
            }
            match key {
                "targets" => zipf.targets = number as u32,
                "alpha" => zipf.alpha = number,
                "kb" => zipf.kb = number,
                _ => zipf.requests = number as u64,
            }
        }
        Ok(zipf)
    }
}

/// What fits into a few gigabytes of memory.
const REQUESTS_MAX: f64 = 1e9;

impl Zipf {
    /// Makes the trace.
    #[must_use]
    pub fn trace(&self, seed: u64) -> Trace {
        let mut random = fastrand::Rng::with_seed(seed);
        let sizes = spread_sizes(self.targets as usize, random.f64());
        let scale = f64::from(self.targets) * self.kb * 1024.0 / sizes.iter().sum::<f64>();
        let weights: Vec<f64> = (1..=self.targets).map(|rank| f64::from(rank).powf(-self.alpha)).collect();
        let sum: f64 = weights.iter().sum();
        let shares: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
        let targets = sizes.iter().enumerate().map(|(rank, size)| TargetFacts {
            hash: baton_dispatch::target_hash(format!("/zipf/{rank}").as_bytes()),
            bytes: (size * scale) as u64,
            dynamic: false,
        });
        let name = format!("zipf {}", self.alpha);
        Trace::new(name, targets.collect(), draw(&shares, self.requests, 1.0, &mut random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_and_refused() {
        let expected = Zipf { targets: 10, alpha: 1.5, ..Zipf::default() };
        assert_eq!("targets=10,alpha=1.5".parse(), Ok(expected));
        for wrong in ["targets=0", "alpha=x", "size=3", "kb", "alpha=nan", "requests=-1"] {
            assert!(wrong.parse::<Zipf>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranks_follow_the_law() {
        let zipf = Zipf { targets: 100, alpha: 1.0, kb: 10.0, requests: 100_000 };
        let trace = zipf.trace(1);
        let counts = trace.counts();
        assert!((counts[0] as f64 / counts[9] as f64 - 10.0).abs() < 0.1);
        let bytes: u64 = trace.targets().iter().map(|target| target.bytes).sum();
        assert!((bytes as f64 / 100.0 / 10_240.0 - 1.0).abs() < 0.01);
    }
}
