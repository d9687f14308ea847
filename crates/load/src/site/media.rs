//! Films, and viewers who break off and seek. A player asks for a part of a film at a time, at the pace at which it plays.
//!
//! Films and sessions are a hundredth as long as in the world: so a cell sees hundreds of viewers. How long they stay is
//! log-normal with the spread of H. Yu and others (EuroSys 2006), popularity is Zipf's.

use super::model::{LoadSite, SiteFile};
use super::random::{SplitMix64, Weighted};
use crate::script::{Script, ScriptStep};
use crate::targets::LoadRequest;

pub(super) fn make(films: usize, sessions: usize, seed: u64) -> LoadSite {
    let mut random = SplitMix64(seed);
    let parts: Vec<u32> = (0..films).map(|_| parts(&mut random, FILM_PARTS, FILM_SPREAD)).collect();
    let bytes = |film: usize| u64::from(parts[film]) * PART_BYTES;
    let path = |film: usize| format!("/films/{film}.mp4");
    // Where the requests for each film begin.
    let firsts: Vec<u32> = (0..films).map(|film| parts[..film].iter().sum()).collect();
    let request = |film: usize, part: u32| {
        let start = u64::from(part) * PART_BYTES;
        LoadRequest::part(path(film), bytes(film), start..start + PART_BYTES)
    };
    let requests = (0..films).flat_map(|film| (0..parts[film]).map(move |part| (film, part)));
    let mut script = Script::new(requests.map(|(film, part)| request(film, part)).collect());
    let popularity = Weighted::zipf(films);
    for _ in 0..sessions {
        let film = popularity.pick(&mut random);
        let seen = viewing(parts[film], &mut random).into_iter().enumerate();
        script.push(seen.map(|(number, part)| ScriptStep {
            request: firsts[film] + part,
            pause_ms: if number == 0 { 0 } else { PART_MS },
        }));
    }
    let files = (0..films).map(|film| SiteFile::text(path(film), bytes(film))).collect();
    LoadSite::new(format!("{films} films"), files, script)
}

/// The parts that a viewer sees of a film of so many, in their order.
fn viewing(film: u32, random: &mut SplitMix64) -> Vec<u32> {
    let stay = parts(random, STAY_PARTS, STAY_SPREAD).min(film);
    if random.unit() >= SEEKING {
        return (0..stay).collect();
    }
    let before = stay.div_ceil(2);
    let to = before + (random.unit() * f64::from(film - before)) as u32;
    (0..before).chain(to..film.min(to + stay - before)).collect()
}

/// At least one.
fn parts(random: &mut SplitMix64, median: f64, spread: f64) -> u32 {
    random.lognormal(median.ln(), spread).round().clamp(1.0, 10.0 * FILM_PARTS) as u32
}

/// Not a multiple of the blocks of a cache.
const PART_BYTES: u64 = 100_000;
/// How long a player takes for a part.
const PART_MS: u32 = 50;
/// The median length of a film, and of a stay.
const FILM_PARTS: f64 = 60.0;
const STAY_PARTS: f64 = 15.0;
const FILM_SPREAD: f64 = 0.5;
const STAY_SPREAD: f64 = 1.6;
/// The share of viewers who skip a part.
const SEEKING: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::Expects;

    #[test]
    fn viewers_begin_at_the_beginning_leave_and_seek() {
        let script = make(40, 2000, 1).script;
        let parts_of = |number| script.session(number).iter().map(|step| step.request);
        let sessions: Vec<Vec<u32>> = (0..2000).map(|number| parts_of(number).collect()).collect();
        let expects = |request: u32| script.requests()[request as usize].expects;
        assert!(sessions.iter().all(|seen| matches!(expects(seen[0]), Expects::Part { start: 0, .. })));
        let seeks = sessions.iter().filter(|seen| seen.windows(2).any(|pair| pair[1] != pair[0] + 1)).count();
        assert!((60..=200).contains(&seeks), "{seeks}");
        let short = sessions.iter().filter(|seen| seen.len() <= 15).count();
        assert!((900..=1200).contains(&short), "{short}");
    }
}
