//! Sessions with media that are made, not read: films of some popularity, viewers who break off, and seek.
//!
//! Popularity follows Zipf's law, and drifts: films change their ranks. How long viewers stay is log-normal, with the
//! spread that H. Yu and others saw (*Understanding User Behavior in Large-Scale Video-on-Demand Systems*, EuroSys 2006: 37 %
//! of the sessions end within 5 minutes, 53 % within 10, 75 % within 25). Players find the index of some films at
//! their end, and read it first.

use std::ops::Range;

use super::session::{Object, Session};
use crate::trace::{Parameters, ParametersError};

/// Parameters of sessions with media. As text: `films=1000,alpha=0.8,minutes=90`, each optional.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Media {
    /// Number of films, 1 to 2^24.
    pub films: u32,
    /// The exponent of Zipf's law, 0 to 5.
    pub alpha: f64,
    /// Median length of a film in minutes; lengths are log-normal.
    pub minutes: f64,
    /// Median time after which a viewer breaks off, in minutes; a film that ends before is seen to its end.
    pub stay: f64,
    /// The share of viewers who may break off, 0 to 1; the others see all.
    pub leave: f64,
    /// The share of viewers who skip a part, 0 to 1.
    pub seek: f64,
    /// How often each film changes its rank over all sessions.
    pub drift: f64,
    /// Bits of a second of film, in thousands.
    pub kbit: f64,
    /// Number of sessions.
    pub sessions: u32,
    /// Sessions that begin within an hour.
    pub per_hour: f64,
}

impl Default for Media {
    fn default() -> Self {
        Self {
            films: 1000,
            alpha: 0.8,
            minutes: 60.0,
            stay: 9.0,
            leave: 1.0,
            seek: 0.1,
            drift: 1.0,
            kbit: 2000.0,
            sessions: 10_000,
            per_hour: 400.0,
        }
    }
}

/// The share of films whose index is at their end.
const TAIL_FIRST: f64 = 0.3;
/// The spread (sigma) of the log-normal times that viewers stay, from the quantiles above.
const STAY_SPREAD: f64 = 1.6;
/// The spread of the lengths of films.
const LENGTH_SPREAD: f64 = 0.5;
const MINUTE_MS: f64 = 60_000.0;

impl Media {
    /// Reads parameters.
    ///
    /// # Errors
    /// An unknown name, no number, or one out of range.
    pub fn parse(text: &str) -> Result<Self, ParametersError> {
        let mut media = Self::default();
        let (mut films, mut sessions) = (f64::from(media.films), f64::from(media.sessions));
        Parameters::new("films=1000,alpha=0.8,minutes=60,stay=9,leave=1,seek=0.1,drift=1,kbit=2000,sessions=10000,per_hour=400")
            .number("films", 1.0..=f64::from(1 << 24), &mut films)
            .number("alpha", 0.0..=5.0, &mut media.alpha)
            .number("minutes", 0.1..=1e4, &mut media.minutes)
            .number("stay", 0.01..=1e6, &mut media.stay)
            .number("leave", 0.0..=1.0, &mut media.leave)
            .number("seek", 0.0..=1.0, &mut media.seek)
            .number("drift", 0.0..=1e3, &mut media.drift)
            .number("kbit", 1.0..=1e6, &mut media.kbit)
            .number("sessions", 1.0..=1e8, &mut sessions)
            .number("per_hour", 0.01..=1e9, &mut media.per_hour)
            .read(text)?;
        (media.films, media.sessions) = (films as u32, sessions as u32);
        Ok(media)
    }

    /// Bytes of a minute of film.
    fn bytes_per_minute(&self) -> u64 {
        (self.kbit * 1000.0 / 8.0 * 60.0) as u64
    }

    /// Makes films and sessions, these in order of time.
    pub(super) fn make(&self, seed: u64) -> (Vec<Object>, Vec<Session>) {
        let mut random = fastrand::Rng::with_seed(seed);
        let films: Vec<Object> = (0..self.films)
            .map(|_| {
                let minutes = self.minutes * (LENGTH_SPREAD * normal(&mut random)).exp();
                let bytes = (minutes * self.bytes_per_minute() as f64) as u64;
                Object { bytes, tail_first: random.f64() < TAIL_FIRST, is_media: true }
            })
            .collect();
        let mut by_rank: Vec<u32> = (0..self.films).collect();
        random.shuffle(&mut by_rank);
        let sums: Vec<f64> = (1..=self.films)
            .scan(0.0, |sum, rank| {
                *sum += f64::from(rank).powf(-self.alpha);
                Some(*sum)
            })
            .collect();
        let all = sums.last().copied().unwrap_or(0.0);
        let swaps_per_session = self.drift * f64::from(self.films) / 2.0 / f64::from(self.sessions);
        let (mut at, mut swaps) = (0.0, 0.0);
        let sessions = (0..self.sessions).map(|_| {
            at -= (1.0 - random.f64()).ln() / self.per_hour * 60.0 * MINUTE_MS;
            swaps += swaps_per_session;
            while swaps >= 1.0 {
                swaps -= 1.0;
                by_rank.swap(random.usize(..films.len()), random.usize(..films.len()));
            }
            let drawn = random.f64() * all;
            let rank = sums.partition_point(|sum| *sum < drawn).min(films.len() - 1);
            let object = by_rank[rank];
            let reads = self.reads(films[object as usize].bytes, &mut random);
            Session { at_ms: at as u64, object, reads, bytes_per_minute: self.bytes_per_minute() }
        });
        let sessions = sessions.collect();
        (films, sessions)
    }

    /// What a viewer sees of a film: from the beginning, and maybe from somewhere later.
    fn reads(&self, film: u64, random: &mut fastrand::Rng) -> Vec<Range<u64>> {
        let leaves = random.f64() < self.leave;
        let stay = self.stay * (STAY_SPREAD * normal(random)).exp() * self.bytes_per_minute() as f64;
        let stay = if leaves { (stay as u64).clamp(1, film) } else { film };
        let unbroken = 0..stay;
        if random.f64() >= self.seek {
            return vec![unbroken];
        }
        let before = (stay as f64 * random.f64()) as u64;
        let from = before + ((film - before) as f64 * random.f64()) as u64;
        vec![0..before.max(1), from..film.min(from + (stay - before))]
    }
}

/// A number of the normal distribution, by Box and Muller.
fn normal(random: &mut fastrand::Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn viewers_stay_as_published() {
        let media = Media { minutes: 600.0, seek: 0.0, ..Media::default() };
        let (_, sessions) = media.make(1);
        let within = |minutes: u64| {
            let bytes = minutes * media.bytes_per_minute();
            let few = sessions.iter().filter(|session| session.reads[0].end <= bytes).count();
            few as f64 / sessions.len() as f64
        };
        for (minutes, published) in [(5, 0.37), (10, 0.53), (25, 0.75)] {
            assert!((within(minutes) - published).abs() < 0.02, "{minutes}: {}", within(minutes));
        }
    }

    #[test]
    fn reads_stay_within_the_film_and_sessions_in_order() {
        let media = Media { seek: 0.5, sessions: 3000, films: 20, ..Media::default() };
        let (films, sessions) = media.make(2);
        assert!(sessions.windows(2).all(|pair| pair[0].at_ms <= pair[1].at_ms));
        for session in &sessions {
            let film = films[session.object as usize].bytes;
            assert!(session.reads.iter().all(|read| read.start <= read.end && read.end <= film));
            assert!(!session.reads[0].is_empty());
        }
        assert!(sessions.iter().any(|session| session.reads.len() == 2));
    }

    #[test]
    fn parameters_are_read_and_refused() {
        let expected = Media { films: 10, leave: 0.5, ..Media::default() };
        assert_eq!(Media::parse("films=10,leave=0.5"), Ok(expected));
        for wrong in ["films=0", "leave=2", "size=3", "kbit", "alpha=nan"] {
            assert!(Media::parse(wrong).is_err(), "{wrong}");
        }
    }
}
