//! When a certificate is renewed: at a moment that the authority suggests (ARI, RFC 9773), or after two thirds of its
//! life, but never in its last tenth.

use std::time::Duration;

use crate::time::UnixTime;

/// From when until when a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Its first second.
    pub not_before: UnixTime,
    /// Its last second.
    pub not_after: UnixTime,
}

impl Validity {
    /// How long the certificate is valid.
    pub fn life(&self) -> Duration {
        self.not_after.since(self.not_before)
    }
}

/// In which time the authority wants a certificate to be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its first second.
    pub start: UnixTime,
    /// The second after its last one.
    pub end: UnixTime,
}

/// The chosen moment at which one certificate is renewed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Renewal {
    validity: Validity,
    window: Option<Window>,
    at: UnixTime,
}

impl Renewal {
    /// Without a suggestion: after two thirds of the life, up to a thirtieth of it earlier at random, so that
    /// certificates that were issued together are not renewed together.
    pub(super) fn by_age(validity: Validity, random: &mut fastrand::Rng) -> Self {
        let due = validity.not_before.plus(validity.life() * 2 / 3);
        let early = (validity.life() / 30).mul_f64(random.f64());
        Self { validity, window: None, at: due.minus(early) }
    }

    /// Takes a suggestion. A moment once chosen stays as long as the window is the same: choosing anew at each look
    /// would prefer late moments.
    pub(super) fn suggest(&mut self, window: Window, random: &mut fastrand::Rng) {
        // RFC 9773, 4.2: a window that ends before it starts is treated as no answer.
        if window.end <= window.start || self.window == Some(window) {
            return;
        }
        let span = window.end.0 - window.start.0;
        let latest = self.validity.not_after.minus(self.validity.life() / 10);
        self.window = Some(window);
        self.at = UnixTime(window.start.0 + random.u64(..span)).min(latest);
    }

    /// The chosen moment.
    pub(super) fn at(&self) -> UnixTime {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;
    const QUARTER: Validity = Validity { not_before: UnixTime(0), not_after: UnixTime(90 * DAY) };

    fn renewal(seed: u64) -> (Renewal, fastrand::Rng) {
        let mut random = fastrand::Rng::with_seed(seed);
        (Renewal::by_age(QUARTER, &mut random), random)
    }

    #[test]
    fn without_a_suggestion_a_third_of_the_life_is_left() {
        for seed in 0..100 {
            let at = renewal(seed).0.at().0;
            assert!((57 * DAY..=60 * DAY).contains(&at), "{at}");
        }
    }

    #[test]
    fn the_moment_lies_in_the_window_and_stays_while_the_window_does() {
        let window = Window { start: UnixTime(30 * DAY), end: UnixTime(32 * DAY) };
        for seed in 0..100 {
            let (mut renewal, mut random) = renewal(seed);
            renewal.suggest(window, &mut random);
            let at = renewal.at();
            assert!((window.start..window.end).contains(&at));
            renewal.suggest(window, &mut random);
            assert_eq!(renewal.at(), at);
        }
    }

    #[test]
    fn windows_that_are_reversed_or_too_late_do_no_harm() {
        let (mut renewal, mut random) = renewal(1);
        let before = renewal.at();
        renewal.suggest(Window { start: UnixTime(5), end: UnixTime(5) }, &mut random);
        assert_eq!(renewal.at(), before);
        renewal.suggest(Window { start: UnixTime(200 * DAY), end: UnixTime(u64::MAX) }, &mut random);
        assert_eq!(renewal.at(), UnixTime(81 * DAY));
    }
}
