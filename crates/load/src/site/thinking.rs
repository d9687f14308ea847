//! How sessions are cut from a stream of requests: pages with what is embedded in them, and pauses between.
//!
//! The laws are those of SURGE (Barford and Crovella, *Generating Representative Web Workloads*, 1998), which the thesis
//! names without numbers: a page embeds objects by Pareto's law (k = 1, α = 2.43), the browser works 0.35 s in the mean on
//! each (Weibull, 1.46, 0.382 s), and its user thinks 3 s in the mean about each page (Pareto, k = 1 s, α = 1.5). The thesis
//! prints that a session has 7.29 requests in the mean: the number of its pages is chosen so.

use super::random::SplitMix64;
use crate::script::{Script, ScriptStep};

/// Requests of a session in the mean (Harji 2010, sections 3.1 and 4.1).
pub(super) const SESSION_MEAN: f64 = 7.29;

/// Cuts the requests into sessions.
pub(super) fn cut_into_sessions(
    script: &mut Script,
    requests: impl IntoIterator<Item = u32>,
    random: &mut SplitMix64,
) {
    let mut requests = requests.into_iter().peekable();
    while requests.peek().is_some() {
        let session = session_pauses(random);
        let steps = session.into_iter().zip(requests.by_ref());
        script.push(steps.map(|(pause_ms, request)| ScriptStep { request, pause_ms }).collect::<Vec<_>>());
    }
}

/// The pause before each request of a session.
fn session_pauses(random: &mut SplitMix64) -> Vec<u32> {
    let mut pauses = Vec::new();
    for page in 0..random.geometric(SESSION_MEAN / OBJECTS_MEAN) {
        let objects = random.pareto(1.0, OBJECTS_ALPHA).min(OBJECTS_MAX) as usize;
        for object in 0..objects {
            let pause_s = match (page, object) {
                (0, 0) => 0.0,
                (_, 0) => random.pareto(1.0, 1.5).min(THINKING_S_MAX),
                _ => random.weibull(1.46, 0.382),
            };
            pauses.push((pause_s * 1000.0) as u32);
        }
    }
    pauses
}

const OBJECTS_ALPHA: f64 = 2.43;
/// Riemann's zeta function of 2.43: the mean of Pareto's law with whole numbers.
const OBJECTS_MEAN: f64 = 1.370;
const OBJECTS_MAX: f64 = 150.0;
/// Who thinks longer has left.
const THINKING_S_MAX: f64 = 60.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_so_many_requests_and_begins_at_once() {
        let mut random = SplitMix64(7);
        let sessions: Vec<_> = (0..100_000).map(|_| session_pauses(&mut random)).collect();
        let requests: usize = sessions.iter().map(Vec::len).sum();
        let mean = requests as f64 / sessions.len() as f64;
        assert!((mean / SESSION_MEAN - 1.0).abs() < 0.01, "{mean}");
        assert!(
            sessions.iter().all(|pauses| pauses[0] == 0 && pauses[1..].iter().all(|pause| *pause <= 60_000))
        );
    }
}
