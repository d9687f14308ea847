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
use super::statistics::Statistic;
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
    fn name(self) -> &'static str {
        match self {
            Self::Banking => "banking",
            Self::Ecommerce => "ecommerce",
            Self::Support => "support",
        }
    }

    fn program(self) -> &'static str {
        match self {
            Self::Banking => BANKING,
            Self::Ecommerce => ECOMMERCE,
            Self::Support => SUPPORT,
        }
    }

    /// Bytes of a reply in the mean.
    fn mean_bytes(self) -> f64 {
        1024.0
            * match self {
                Self::Banking => 34.8,
                Self::Ecommerce => 143.9,
                Self::Support => 78.5,
            }
    }

    fn pages(self) -> &'static [Page] {
        match self {
            Self::Banking => &[
                ("login", 21.5, 4.0),
                ("account-summary", 15.1, 17.0),
                ("check-detail", 8.5, 11.0),
                ("check-image", 16.9, 9.0),
                ("bill-pay", 13.9, 15.0),
                ("bill-pay-status", 2.2, 24.0),
                ("payee", 1.9, 26.0),
                ("quick-pay", 6.7, 22.0),
                ("profile", 2.1, 30.0),
                ("order-check", 2.1, 23.0),
                ("transfer", 3.0, 14.0),
                ("logout", 6.1, 46.0),
            ],
            Self::Ecommerce => &[
                ("index", 13.1, 190.0),
                ("search", 13.0, 142.0),
                ("browse", 11.8, 104.0),
                ("browse-line", 10.6, 120.0),
                ("product", 24.8, 150.0),
                ("customise", 16.9, 160.0),
                ("cart", 5.0, 130.0),
                ("login", 2.1, 90.0),
                ("shipping", 1.6, 80.0),
                ("billing", 1.1, 80.0),
            ],
            Self::Support => &[
                ("home", 8.0, 120.0),
                ("search", 13.5, 90.0),
                ("catalogue", 12.0, 60.0),
                ("product", 25.0, 70.0),
                ("downloads", 24.5, 80.0),
                ("file-list", 17.0, 60.0),
            ],
        }
    }
}

/// What the programs make of a page; the rest is a file.
const TEXT_BYTES: u64 = 4096;

/// Each page is asked for by so many users, each with a page of its own.
const USERS: usize = 100;

pub(super) fn make(application: Application, requests: usize, seed: u64) -> LoadSite {
    let name = application.name();
    let pages = application.pages();
    let share: f64 = pages.iter().map(|(_, share, _)| share).sum();
    let mean: f64 = pages.iter().map(|(_, part, size)| part / share * size).sum();
    let bytes = |size: f64| (size / mean * application.mean_bytes()) as u64;
    let rests: BTreeSet<u64> = pages.iter().map(|(.., size)| bytes(*size) - TEXT_BYTES).collect();
    let program = SiteContent::Program(application.program());
    let mut files = vec![SiteFile { path: format!("/{name}.php"), content: program }];
    files.extend(rests.into_iter().map(|rest| SiteFile::text(format!("/padding/{rest}"), rest)));
    let target = |(page, _, size): &Page, user: usize| {
        let bytes = bytes(*size);
        LoadRequest::page(format!("/{name}.php?page={page}&user={user}&bytes={bytes}"), Some(bytes))
    };
    let targets = pages.iter().flat_map(|page| (0..USERS).map(move |user| target(page, user))).collect();
    let mut random = SplitMix64(seed);
    let by_page = Weighted::new(pages.iter().map(|(_, share, _)| *share));
    let order: Vec<u32> = (0..requests)
        .map(|_| {
            let page = by_page.pick(&mut random);
            (page * USERS + (random.unit() * USERS as f64) as usize) as u32
        })
        .collect();
    let mut script = Script::new(targets);
    cut_into_sessions(&mut script, order, &mut random);
    let sent: f64 = script
        .steps()
        .iter()
        .map(|step| script.requests()[step.request as usize].bytes.unwrap_or(0) as f64)
        .sum();
    let sent_kib = sent / requests.max(1) as f64 / 1024.0;
    let mean = Statistic::new("mean reply, KiB", Some(application.mean_bytes() / 1024.0), sent_kib);
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
