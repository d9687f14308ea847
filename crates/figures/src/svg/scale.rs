//! Where a value is in the picture, and which round numbers stand at an axis.

/// Values on one side, places in the picture on the other.
pub(super) struct PlotScale {
    least: f64,
    most: f64,
    is_logarithmic: bool,
    /// What is counted has no halves.
    is_whole: bool,
    pub(super) from: f64,
    to: f64,
}

impl PlotScale {
    pub(super) fn new(
        values: impl Iterator<Item = f64>,
        is_logarithmic: bool,
        (from, to): (f64, f64),
    ) -> Self {
        let usable = values.filter(|value| value.is_finite() && (!is_logarithmic || *value > 0.0));
        let (mut least, mut most, is_whole) =
            usable.fold((f64::MAX, f64::MIN, true), |(least, most, is_whole), value| {
                (least.min(value), most.max(value), is_whole && value.fract() == 0.0)
            });
        if least > most {
            (least, most) = if is_logarithmic { (1.0, 2.0) } else { (0.0, 1.0) };
        }
        if least == most {
            most = if is_logarithmic { 2.0 * least } else { least + 1.0 };
        }
        Self { least, most, is_logarithmic, is_whole, from, to }
    }

    /// Ends at round numbers, so that nothing is beyond the grid's first and last line.
    pub(super) fn up_to_a_tick(mut self) -> Self {
        let ticks = self.ticks();
        if let [first, second, ..] = ticks[..]
            && !self.is_logarithmic
        {
            let step = second - first;
            self.least = (self.least / step).floor() * step;
            self.most = (self.most / step).ceil() * step;
        }
        self
    }

    /// Where a value is; what is beyond the axis is at its end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.is_logarithmic { value.ln() } else { value };
        let value = value.clamp(self.least, self.most);
        let share = (scale(value) - scale(self.least)) / (scale(self.most) - scale(self.least));
        self.from + share * (self.to - self.from)
    }

    /// Round numbers, up to ten of them; with equal factors, powers of two or ten.
    pub(super) fn ticks(&self) -> Vec<f64> {
        // Within two powers of two, equal steps say more.
        if self.is_logarithmic && self.most / self.least > 4.0 {
            let base: f64 = if self.most / self.least > 2048.0 { 10.0 } else { 2.0 };
            let first = (self.least.log(base) - 1e-9).ceil() as i32;
            return (first..)
                .map(|power| base.powi(power))
                .take_while(|tick| *tick <= self.most * 1.001)
                .collect();
        }
        let rough = (self.most - self.least) / 8.0;
        let unit = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * unit).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(unit).max(if self.is_whole { 1.0 } else { 0.0 });
        let first = (self.least / step).ceil() as i64;
        (first..)
            .map(|number| number as f64 * step)
            .take_while(|tick| *tick <= self.most + step * 1e-9)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_within_the_axis() {
        let axis = |values: [f64; 2], is_logarithmic| {
            PlotScale::new(values.into_iter(), is_logarithmic, (0.0, 100.0))
        };
        assert_eq!(axis([0.0, 8719.0], false).ticks(), [0.0, 2000.0, 4000.0, 6000.0, 8000.0]);
        assert_eq!(axis([1.0, 16.0], true).ticks(), [1.0, 2.0, 4.0, 8.0, 16.0]);
        assert_eq!(axis([1.0, 16.0], true).place(4.0), 50.0);
        assert_eq!(axis([0.0, 3.0], false).ticks(), [0.0, 1.0, 2.0, 3.0], "there are no half nodes");
        assert_eq!(axis([0.0, 2.5], false).ticks().len(), 6);
        assert_eq!(axis([5.0, 5.0], false).place(5.0), 0.0, "a single value has a position");
        let whole = axis([0.0, 8719.0], false).up_to_a_tick();
        assert_eq!((whole.ticks().last(), whole.place(10_000.0)), (Some(&10_000.0), 100.0));
        let below = axis([-3.0, 12.0], false).up_to_a_tick();
        assert_eq!((below.ticks()[0], below.place(-4.0)), (-4.0, 0.0), "losses are within the grid, too");
    }
}
