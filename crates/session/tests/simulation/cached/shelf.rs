//! The cache of a simulated worker, and what the origin behind it has.

use std::iter::successors;
use std::rc::Rc;
use std::sync::Arc;

use baton_cache::{
    CachedRoute, Grouping, PolicyChoice, PolicyName, QueryRule, RouteRules, Settings, SharedCache, Sources,
};
use baton_telemetry::metrics::Counters;

use super::Resource;
use crate::choices::Choices;
use crate::clock;
use crate::ledger::Ledger;

/// Path below which responses are cached.
pub(crate) const CACHED: &str = "/cached";

/// The cache of a world, and what its origin has.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) shared: Arc<SharedCache>,
    pub(crate) route: Arc<CachedRoute>,
    /// Names of resources.
    pub(crate) names: Vec<u32>,
    pub(crate) ledger: Rc<Ledger>,
    /// Whether clients ask for the same, one after the other, as a crowd does.
    has_crowd: bool,
}

impl Shelf {
    /// A cache that is too small more often than not. If it is ample it has room for all that a crowd asks for.
    pub(crate) fn open(counters: Counters, is_ample: bool, choices: &mut Choices) -> Self {
        let mut settings = Settings {
            memory_bytes_max: choices.one(&[20_000, 100_000, 1 << 20, 64 << 20]),
            memory_bytes_min: 10_000,
            objects_max: choices.one(&[1, 3, 1_000]),
            block_bytes: choices.one(&[4 << 10, 16 << 10]),
            policy: policy_of(choices),
            ..Settings::default()
        };
        if is_ample {
            (settings.memory_bytes_max, settings.objects_max) = (AMPLE_BYTES, AMPLE_OBJECTS);
            // Nor does memory become short.
            settings.memory_bytes_min = AMPLE_BYTES;
        }
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
            unkeyed_fields: vec!["X-Kind".into(), "X-Number".into()],
            stale_if_unreachable_s: 0,
            ..RouteRules::default()
        };
        // Those of a film follow each other: what is asked for next may have been fetched already.
        let first = choices.number(0..NAMES);
        let distance = choices.one(&[1, 1, 1_000]);
        let names = (0..choices.number(1..4)).map(|number| (first + number * distance) as u32);
        let lasting = |name: u32| (name..).find(|name| Resource::of(*name).is_lasting()).unwrap_or(name);
        let names = match is_ample {
            true => successors(Some(lasting(first as u32)), |name| Some(lasting(name + 1)))
                .take(CROWD_NAMES)
                .collect(),
            false => names.collect(),
        };
        let prefetch = choices.one(&[0, 1, 3]);
        let grouping = choices.one(&[None, Some(Grouping::Pyramid), Some(Grouping::Exponential)]);
        let policy = PolicyChoice { name: policy_of(choices), grouping };
        Self {
            shared,
            route: Arc::new(CachedRoute { partition: "simulated".into(), policy, rules, prefetch }),
            names,
            ledger: Rc::new(Ledger::new(is_ample)),
            has_crowd: is_ample,
        }
    }

    /// What the crowd wants with the request of this number, if there is one.
    pub(crate) fn crowd_name(&self, number: usize) -> Option<u32> {
        self.has_crowd.then(|| self.names[number % REQUESTS_MAX % self.names.len()])
    }
}

/// As likely one of each object's own.
fn policy_of(choices: &mut Choices) -> Option<PolicyName> {
    let named = choices.one(&PolicyName::ALL);
    choices.one(&[None, Some(named)])
}

/// More than the responses of a world.
const AMPLE_BYTES: u64 = 64 << 20;
const AMPLE_OBJECTS: usize = 1_000;

/// Numbers of requests that belong to one client.
pub(crate) const REQUESTS_MAX: usize = 100;

/// As many as a client asks for.
const CROWD_NAMES: usize = 12;

/// So many resources there are.
const NAMES: usize = 100_000;
