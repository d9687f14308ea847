//! A log as the sessions to replay: without what leads to applications, unless these may be asked.

use std::path::PathBuf;

use baton_config::{RouteSettings, Site};
use baton_http::decode_path;
use baton_load::site::replay;
use baton_load::{Script, ScriptStep};
use baton_site::matcher::{self, Matcher};

use super::super::output::Failure;

/// A log as the sessions to replay.
pub(super) struct Replayed {
    pub(super) script: Script,
    /// Requests per second in the log.
    pub(super) rate: f64,
    /// What was read and left out.
    pub(super) words: Vec<String>,
}

/// Reads logs of a site.
pub(super) fn read(logs: &[PathBuf], site: &Site, applications: bool) -> Result<Replayed, Failure> {
    let log = replay(logs).map_err(|error| Failure(format!("{error:#}")))?;
    let (mut words, all) = (log.words, log.script.steps().len());
    let mut script = own(&log.script, &Elsewhere::new(site, applications));
    if let Some(host) = site.settings.hosts.iter().find(|host| !host.contains('*')) {
        script = script.with_host(host);
    }
    let left = script.steps().len();
    if left == 0 {
        return Err(Failure(format!(
            "{all} requests of the log are for applications or origins, none for files: replay them with --applications"
        )));
    }
    if left < all {
        words.push(format!(
            "Left out {} requests for routes that lead elsewhere{}.",
            all - left,
            if applications { "" } else { "; --applications replays those for applications and origins" }
        ));
    }
    Ok(Replayed { script, rate: log.requests_per_second * left as f64 / all as f64, words })
}

/// The sessions without the requests that lead elsewhere; pauses stay, and sessions with nothing left go.
fn own(script: &Script, elsewhere: &Elsewhere) -> Script {
    let stays: Vec<bool> = script.requests().iter().map(|request| !elsewhere.has(&request.path)).collect();
    let mut own = Script::new(script.requests().to_vec());
    for number in 0..script.session_count() {
        let mut pause_ms = 0;
        let mut steps = Vec::new();
        for step in script.session(number) {
            pause_ms += step.pause_ms;
            if stays[step.request as usize] {
                steps.push(ScriptStep { pause_ms: std::mem::take(&mut pause_ms), ..*step });
            }
        }
        own.push(steps);
    }
    own
}

/// The routes of a site, and which of them a copy does without.
struct Elsewhere {
    routes: Vec<PlacedRoute>,
}

struct PlacedRoute {
    matcher: Matcher,
    is_elsewhere: bool,
}

impl AsRef<Matcher> for PlacedRoute {
    fn as_ref(&self) -> &Matcher {
        &self.matcher
    }
}

impl Elsewhere {
    fn new(site: &Site, applications: bool) -> Self {
        let place = |settings: &RouteSettings| PlacedRoute {
            matcher: settings.matcher(),
            is_elsewhere: settings.cluster.is_some()
                || !applications && (settings.proxy.is_some() || settings.application().is_some()),
        };
        let mut routes: Vec<_> = site.routes.iter().map(|route| place(&route.settings)).collect();
        matcher::sort(&mut routes);
        Self { routes }
    }

    /// Whether a target leads there. One that the server would refuse does not: refusing is work, too.
    fn has(&self, target: &str) -> bool {
        let path = target.split('?').next().unwrap_or(target);
        let mut decoded = Vec::new();
        decode_path(path.as_bytes(), &mut decoded).is_ok()
            && matcher::find(&self.routes, &mut decoded).is_some_and(|route| route.is_elsewhere)
    }
}

#[cfg(test)]
mod tests {
    use baton_load::LoadRequest;

    use super::*;

    #[test]
    fn a_session_without_what_leads_elsewhere_keeps_its_pauses() {
        let placed = |matcher, is_elsewhere| PlacedRoute { matcher, is_elsewhere };
        let mut routes =
            vec![placed(Matcher::prefix("/app/"), true), placed(Matcher::prefix("/app/static/"), false)];
        matcher::sort(&mut routes);
        let targets = ["/", "/app/x?q", "/app/static/a"].map(LoadRequest::replay);
        let mut script = Script::new(targets.to_vec());
        let step = |request, pause_ms| ScriptStep { request, pause_ms };
        script.push([step(0, 0), step(1, 300), step(2, 200)]);
        script.push([step(1, 0)]);
        let own = own(&script, &Elsewhere { routes });
        assert_eq!(own.session_count(), 1, "nothing is left of the second");
        assert_eq!(own.session(0), [step(0, 0), step(2, 500)]);
    }
}
