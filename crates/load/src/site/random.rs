//! Random numbers that are the same for ever, and the laws that the sources name.

/// Steele, Lea and Flood's generator: ten lines that give the same numbers for ever, which no crate promises.
#[derive(Clone, Debug)]
pub(super) struct SplitMix64(pub(super) u64);

impl SplitMix64 {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Between 0 and 1, without 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Weibull's law.
    pub(super) fn weibull(&mut self, shape: f64, scale: f64) -> f64 {
        scale * (-(1.0 - self.unit()).ln()).powf(1.0 / shape)
    }

    /// Pareto's law: at least `least`.
    pub(super) fn pareto(&mut self, least: f64, alpha: f64) -> f64 {
        least * (1.0 - self.unit()).powf(-1.0 / alpha)
    }

    /// How often something happens that goes on with the same chance each time: 1 or more, `mean` in the mean.
    pub(super) fn geometric(&mut self, mean: f64) -> usize {
        if mean <= 1.0 {
            return 1;
        }
        1 + ((1.0 - self.unit()).ln() / (1.0 - 1.0 / mean).ln()) as usize
    }

    /// The logarithm is normal (Box and Muller).
    pub(super) fn lognormal(&mut self, mu: f64, sigma: f64) -> f64 {
        let (radius, angle) = ((-2.0 * (1.0 - self.unit()).ln()).sqrt(), std::f64::consts::TAU * self.unit());
        (mu + sigma * radius * angle.cos()).exp()
    }
}

/// Indices, each as often as its weight says.
#[derive(Clone, Debug)]
pub(super) struct Weighted {
    /// The sums of the weights up to each.
    sums: Vec<f64>,
}

impl Weighted {
    pub(super) fn new(weights: impl IntoIterator<Item = f64>) -> Self {
        let mut sum = 0.0;
        let add = |weight| {
            sum += weight;
            sum
        };
        Self { sums: weights.into_iter().map(add).collect() }
    }

    /// Zipf's law with exponent 1.
    pub(super) fn zipf(count: usize) -> Self {
        Self::new((1..=count).map(|rank| 1.0 / rank as f64))
    }

    pub(super) fn pick(&self, random: &mut SplitMix64) -> usize {
        let sum = self.sums.last().copied().unwrap_or(0.0);
        let at = random.unit() * sum;
        self.sums.partition_point(|sum| *sum <= at).min(self.sums.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(draw: impl Fn(&mut SplitMix64) -> f64) -> f64 {
        let mut random = SplitMix64(1);
        (0..200_000).map(|_| draw(&mut random)).sum::<f64>() / 200_000.0
    }

    #[test]
    fn laws_have_their_means() {
        let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.02, "{found}");
        near(mean(|random| random.weibull(1.46, 0.382)), 0.346);
        near(mean(|random| random.pareto(1.0, 3.0)), 1.5);
        near(mean(|random| random.geometric(5.4) as f64), 5.4);
        near(mean(|random| random.geometric(0.5) as f64), 1.0);
        near(mean(|random| random.lognormal(1.0, 0.5)), (1.0_f64 + 0.125).exp());
    }

    #[test]
    fn weights_are_shares() {
        let zipf = Weighted::zipf(3);
        let first = mean(|random| f64::from(u8::from(zipf.pick(random) == 0)));
        assert!((first - 6.0 / 11.0).abs() < 0.01, "{first}");
    }
}
