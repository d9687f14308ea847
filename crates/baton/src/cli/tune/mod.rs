//! `baton tune`: which settings would serve a site better, found by trying them on copies of its server.
//!
//! ```text
//!   access log ─► replayed.rs: sessions ──────┐
//!   configuration ─► variant.rs: kinds, dials │
//!                       │                     ▼
//!   baton_tune::Search ─┴► variant's TOML ─► copy.rs: a server on loopback ─► measuring.rs: a trial
//!        └► lines to change, gain with its interval, heat map
//! ```

mod copy;
mod measuring;
mod replayed;
mod variant;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use baton_config::ConfigSource;
use baton_figures::{Interval, Report, page};
use baton_tune::{Budget, Choice, Goal, Search};
use clap::{Args, ValueHint};

use self::measuring::Measuring;
use self::variant::Variants;
use super::config_file::{ConfigFile, load};
use super::output::{Failure, print};

/// Try settings on copies of a server, under the load of its access log, and say which are better
///
/// The copies listen on loopback with control sockets of their own; the running server is never asked. Only GET and HEAD
/// requests of the log are replayed. Architecture, processes or threads, connections, blocking and the size of caches are
/// varied; each trial is paired with one of the present settings.
#[derive(Debug, Args)]
pub(super) struct Tune {
    #[command(flatten)]
    file: ConfigFile,

    /// Access log to replay, also several and compressed ones
    #[arg(long, value_name = "FILE", required = true, num_args = 1.., value_hint = ValueHint::FilePath)]
    log: Vec<PathBuf>,

    /// Site of the log, by its name or a host [default: the first]
    #[arg(long, value_name = "NAME")]
    site: Option<String>,

    /// How long to search
    #[arg(long, value_name = "COUNT", default_value_t = 10.0, value_parser = parse_minutes)]
    minutes: f64,

    /// What to improve: `rate`, `p99` or `memory`
    #[arg(long, default_value_t = Goal::Rate)]
    goal: Goal,

    /// Ask applications and origins, too: copies start applications and send them what the log has
    #[arg(long)]
    applications: bool,

    /// Write a page with the heat map into this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    page: Option<PathBuf>,
}

/// A shorter search cannot compare its finalists.
const MINUTES_MIN: f64 = 0.25;
const MINUTES_MAX: f64 = 24.0 * 60.0;

fn parse_minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse().map_err(|_| format!("{text} is no number"))?;
    let is_enough = (MINUTES_MIN..=MINUTES_MAX).contains(&minutes);
    is_enough.then_some(minutes).ok_or_else(|| format!("between {MINUTES_MIN} and {MINUTES_MAX} minutes"))
}

impl Tune {
    /// Searches, and prints what was found.
    pub(super) fn run(self) -> Result<ExitCode, Failure> {
        let config = load(&ConfigSource::File(self.file.config.clone()))?;
        let begin = Instant::now();
        let variants = Variants::new(&config, self.site.as_deref(), self.applications)?;
        let replayed = replayed::read(&self.log, variants.site(), self.applications)?;
        let mut words = replayed.words.clone();
        let measuring = Measuring::begin(&variants, replayed, self.goal)?;
        words.push(measuring.words());
        let total_s = 60.0 * self.minutes - begin.elapsed().as_secs_f64();
        let budget = Budget { total_s, start_s: measuring::START_S };
        let mut search = Search::new(variants.space(), variants.present(), self.goal, budget);
        while let Some(trial) = search.poll_trial() {
            let done = measuring.pair(&variants, &trial)?;
            eprintln!("{}: {}", variants.describe(trial.candidate), done.words(self.goal));
            search.handle_trial(trial, done.took_s, &done.present, done.outcome);
        }
        words.extend(self.advice(&variants, &search.choice()));
        words.extend(measuring.doubts());
        let report = Report {
            name: "tune".into(),
            title: format!("better settings for {}", self.file.config.display()),
            words,
            figures: vec![search.map()],
            ..Report::default()
        };
        if let Some(file) = &self.page {
            fs::write(file, page("What baton tune tried", std::slice::from_ref(&report)))
                .map_err(|error| Failure(format!("cannot write {}: {error}", file.display())))?;
        }
        let lines = match search.choice() {
            Choice::Change(candidate, _) => format!("\nThe lines to change:\n{}", variants.lines(candidate)),
            Choice::Keep(_) => String::new(),
        };
        print(&format!("{}{lines}", report.to_text()))
    }

    fn advice(&self, variants: &Variants, choice: &Choice) -> Vec<String> {
        let gain = |Interval { low, median, high }: Interval| {
            let percent = |ratio: f64| 100.0 * (ratio - 1.0);
            let (low, median, high) = (percent(low), percent(median), percent(high));
            format!("{median:+.1} % ({low:+.1} to {high:+.1} %) {}", self.goal.words())
        };
        match choice {
            Choice::Change(candidate, paired) => {
                vec![format!("Better: {}: {}.", variants.describe(*candidate), gain(paired.ratio))]
            }
            Choice::Keep(Some((candidate, paired))) => vec![format!(
                "Keep the present settings: nothing was shown to be better. The best of the others was {}: {}.",
                variants.describe(*candidate),
                gain(paired.ratio)
            )],
            Choice::Keep(None) => {
                vec!["Keep the present settings: with all others, some clients were not served.".into()]
            }
        }
    }
}
