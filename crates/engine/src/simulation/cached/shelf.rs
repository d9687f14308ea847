//! The cache of a simulated worker, and what the origin behind it has.

use std::sync::Arc;

use baton_cache::{CachedRoute, PolicyName, QueryRule, RouteRules, Settings, SharedCache, Sources};

use crate::metrics::Counters;
use crate::simulation::choices::Choices;
use crate::simulation::clock;

/// Path below which responses are cached.
pub(crate) const CACHED: &str = "/cached";

/// The cache of a world, and what its origin has.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) shared: Arc<SharedCache>,
    pub(crate) route: Arc<CachedRoute>,
    /// Names of resources.
    pub(crate) names: Vec<u32>,
}

impl Shelf {
    /// A cache that is too small more often than not.
    pub(crate) fn open(counters: Counters, choices: &mut Choices) -> Self {
        let settings = Settings {
            memory_bytes_max: choices.one(&[20_000, 100_000, 1 << 20, 64 << 20]),
            objects_max: choices.one(&[1, 3, 1_000]),
            block_bytes: choices.one(&[4 << 10, 16 << 10]),
            policy: choices.one(&PolicyName::ALL),
            ..Settings::default()
        };
        let sources = Sources {
            secret: [7; 16],
            starts: 1,
            process: choices.seed(),
            seed: choices.seed(),
            unix_s: clock::unix_seconds,
        };
        let shared = SharedCache::open_with(&settings, counters.of_cache(), None, &sources).unwrap();
        let rules = RouteRules {
            query: QueryRule { dropped: vec!["n".into()], ..QueryRule::default() },
            stale_if_unreachable_s: 0,
            ..RouteRules::default()
        };
        // Those of a film follow each other: what is asked for next may have been fetched already.
        let first = choices.number(0..NAMES);
        let distance = choices.one(&[1, 1, 1_000]);
        let names = (0..choices.number(1..4)).map(|number| (first + number * distance) as u32).collect();
        let prefetch = choices.one(&[0, 1, 3]);
        Self {
            shared,
            route: Arc::new(CachedRoute { partition: "simulated".into(), rules, prefetch }),
            names,
        }
    }
}

/// So many resources there are.
const NAMES: usize = 100_000;
