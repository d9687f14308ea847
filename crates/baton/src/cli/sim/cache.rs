//! `baton sim cache`: policies of the shared cache, side by side.

use std::path::PathBuf;
use std::process::ExitCode;

use baton_segment::layout::Layout;
use baton_segment::policy::{Aim, PolicyChoice};
use baton_sim::caching::{CacheScenario, Media, Workload};
use baton_sim::compare_caches;
use clap::{Args, ValueEnum, ValueHint};

use super::super::output::Failure;
use super::reporting::{Output, Progress};
use super::traces::{BuiltIn, make_or_read, read_sessions};

#[derive(Debug, Args)]
pub(super) struct Cache {
    /// Access logs, a built-in trace as for `compare`, or media: sessions with films, as in
    /// media:films=1000,alpha=0.8,minutes=60,stay=9,leave=1,seek=0.1,drift=1,kbit=2000,sessions=10000,per_hour=400;
    /// media+rice, media:films=50+zipf: a trace beside them
    #[arg(value_name = "LOG|TRACE", default_value = "media", value_hint = ValueHint::FilePath)]
    traces: Vec<PathBuf>,

    /// Policies, each with its own grouping of blocks or another: lru, gds, s3-fifo, wu, reach; wu/whole, lru/uniform:16; auto,
    /// the server's default: that of each object
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_value = "auto,reach,s3-fifo,lru,wu,wu/uniform,wu/whole"
    )]
    policies: Vec<PolicyChoice>,

    /// Sizes of the cache, in per cent of the bytes of all objects
    #[arg(long, value_name = "PERCENT,...", value_delimiter = ',', default_value = "1,2,5,10,20", value_parser = percent)]
    sizes: Vec<f64>,

    /// What the cache is to make the most of
    #[arg(long, value_enum, default_value_t = AimName::Bytes)]
    aim: AimName,

    /// Size of a block in KB, a power of two
    #[arg(long, value_name = "KB", default_value_t = Layout::BLOCK_BYTES_DEFAULT >> 10)]
    block_kb: u64,

    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AimName {
    /// Bytes that the origin need not send
    Bytes,
    /// Requests that the origin does not see
    Hits,
}

impl Cache {
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let progress = Progress::default();
        let tell = |what: &str, share| progress.tell(what, share);
        let runner = self.output.runner(&tell);
        let aim = match self.aim {
            AimName::Bytes => Aim::Bytes,
            AimName::Hits => Aim::Hits,
        };
        // What is wrong with the flags is told before the work begins.
        let scenario = CacheScenario::new(self.block_kb.saturating_mul(1024), aim, self.output.seed)?;
        let made = self.made().map(|(media, beside)| Media::parse(media).map(|media| (media, beside)));
        let made = made.transpose()?;
        runner.announce("making the workload");
        let seed = self.output.seed;
        let (workload, summary) = match (made, BuiltIn::named(&self.traces)) {
            (Some((media, None)), _) => (Workload::of_media(&media, seed), None),
            (Some((media, Some(beside))), _) => {
                let (trace, _) = make_or_read(&[beside.into()], seed)?;
                (Workload::of_media(&media, seed).beside(Workload::of_trace(&trace)), None)
            }
            (None, Some(built_in)) => (Workload::of_trace(&built_in.make(seed)?), None),
            (None, None) => {
                read_sessions(&self.traces).map(|(sessions, summary)| (sessions, Some(summary)))?
            }
        };
        let shares: Vec<f64> = self.sizes.iter().map(|percent| percent / 100.0).collect();
        let mut report = compare_caches(runner, &workload, &scenario, &self.policies, &shares);
        report.findings.words.extend(summary.map(|summary| summary.words()).unwrap_or_default());
        progress.end();
        self.output.write(&[report])
    }

    /// The parameters of sessions with media, if these are asked for, and the trace beside them.
    fn made(&self) -> Option<(&str, Option<&str>)> {
        let [only] = &self.traces[..] else { return None };
        let rest = only.to_str()?.strip_prefix("media")?;
        let (media, beside) =
            rest.split_once('+').map_or((rest, None), |(media, beside)| (media, Some(beside)));
        Some((media.trim_start_matches(':'), beside))
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "expected a number")?;
    if number > 0.0 && number <= 100.0 {
        Ok(number)
    } else {
        Err("expected a number above 0, up to 100".into())
    }
}
