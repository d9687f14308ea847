//! Sites like the three of SPECweb2005, for php-fpm: a bank, a shop and a support site.
//!
//! Suzumura et al. (WWW 2009, table 1) print what one reply has in the mean: 34.8, 143.9 and 78.5 KB. Shares and relative
//! sizes of the pages follow the benchmark's description; sizes are then scaled so that the mean is the printed one. Each
//! page computes a little and ends with a file, as theirs did. The support site's downloads, files of up to
//! 40 MB, are left out: the mean of its pages is what is printed.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::model::{LoadSite, SiteContent, SiteFile};
use super::programs::{BANKING, ECOMMERCE, SUPPORT};
use super::random::{SplitMix64, Weighted};
use super::statistics::{Statistic, sent_bytes};
use super::thinking::cut_into_sessions;
use crate::script::Script;
use crate::targets::LoadRequest;

/// One of SPECweb2005's applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Application {
    /// A bank.
    Banking,
    /// A shop.
    Ecommerce,
    /// A support site.
    Support,
}

/// A page: its name, its share in the requests, its relative size.
type Page = (&'static str, f64, f64);

impl Application {
    /// Its name, its program in PHP, and the bytes of a reply in the mean.
    fn facts(self) -> (&'static str, &'static str, f64) {
        match self {
            Self::Banking => ("banking", BANKING, 34.8 * 1024.0),
            Self::Ecommerce => ("ecommerce", ECOMMERCE, 143.9 * 1024.0),
            Self::Support => ("support", SUPPORT, 78.5 * 1024.0),
        }
    }

    fn pages(self) -> Vec<Page> {
        let page = |line: &'static str| {
            let mut words = line.split(',');
            let is_ours = words.next() == Some(self.facts().0);
            let page = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            is_ours.then_some(page)
        };
        PAGES.lines().filter_map(page).collect()
    }
}

/// The pages of all applications: application, page, share in per cent, relative size.
const PAGES: &str = include_str!("specweb2005.csv");

/// What the programs make of a page; the rest is a file.
const TEXT_BYTES: u64 = 4096;

/// Each page is asked for by so many users, each with a page of its own.
const USERS: usize = 100;

pub(super) fn make(application: Application, requests: usize, seed: u64) -> LoadSite {
    let (name, program, mean_bytes) = application.facts();
    let pages = application.pages();
    let share: f64 = pages.iter().map(|(_, share, _)| share).sum();
    let mean: f64 = pages.iter().map(|(_, part, size)| part / share * size).sum();
    let bytes = |size: f64| (size / mean * mean_bytes) as u64;
    let rests: BTreeSet<u64> = pages.iter().map(|(.., size)| bytes(*size) - TEXT_BYTES).collect();
    let program = SiteContent::Program(program);
    let mut files = vec![SiteFile { path: format!("/{name}.php"), content: program }];
    files.extend(rests.into_iter().map(|rest| SiteFile::text(format!("/padding/{rest}"), rest)));
    let target = |(page, _, size): &Page, user: usize| {
        let bytes = bytes(*size);
        LoadRequest::page(format!("/{name}.php?page={page}&user={user}&bytes={bytes}"), Some(bytes))
    };
    let targets = pages.iter().flat_map(|page| (0..USERS).map(move |user| target(page, user))).collect();
    let mut random = SplitMix64(seed);
    let by_page = Weighted::new(pages.iter().map(|(_, share, _)| *share));
    let mut ask = |_| {
        let page = by_page.pick(&mut random);
        (page * USERS + (random.unit() * USERS as f64) as usize) as u32
    };
    let order: Vec<u32> = (0..requests).map(&mut ask).collect();
    let mut script = Script::new(targets);
    cut_into_sessions(&mut script, order, &mut random);
    let sent_kib = sent_bytes(&script) as f64 / requests.max(1) as f64 / 1024.0;
    let mean = Statistic::new("mean reply, KiB", Some(mean_bytes / 1024.0), sent_kib);
    LoadSite::new(format!("SPECweb2005-like {name}"), files, script).with(vec![mean])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_reply_is_the_published_one() {
        for application in [Application::Banking, Application::Ecommerce, Application::Support] {
            let site = make(application, 50_000, 3);
            let mean = &site.statistics[0];
            assert!((mean.ours / mean.published.unwrap() - 1.0).abs() < 0.02, "{site}");
            let shares: f64 = application.pages().iter().map(|(_, share, _)| share).sum();
            assert!((shares - 100.0).abs() < 0.1, "{application:?}: {shares}");
        }
    }
}
