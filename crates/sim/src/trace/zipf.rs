//! A trace by Zipf's law: the target of rank *i* has requests in proportion to *i* to the power of *-alpha*.

use std::str::FromStr;

use super::parameters::{Parameters, ParametersError};
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

impl FromStr for Zipf {
    type Err = ParametersError;

    fn from_str(text: &str) -> Result<Self, ParametersError> {
        let mut zipf = Self::default();
        let (mut targets, mut requests) = (f64::from(zipf.targets), zipf.requests as f64);
        Parameters::new("targets=40000,alpha=0.9,kb=16,requests=1000000")
            .number("targets", 1.0..=f64::from(super::TraceRequest::TARGETS_MAX - 1), &mut targets)
            .number("alpha", 0.0..=5.0, &mut zipf.alpha)
            .number("kb", 0.001..=1e9, &mut zipf.kb)
            .number("requests", 1.0..=REQUESTS_MAX, &mut requests)
            .read(text)?;
        (zipf.targets, zipf.requests) = (targets as u32, requests as u64);
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
