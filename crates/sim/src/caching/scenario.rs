//! One run: which policy objects get, and the size of the cache.

use baton_segment::layout::{BlockSizeError, Grouping, Layout};
use baton_segment::policy::{Aim, CachePolicy, PolicyChoice, PolicyName, is_film};

use super::session::Object;

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct CacheScenario {
    /// The policy, or `auto`: that of each object, which share the cache.
    pub policy: PolicyChoice,
    /// What it is to make the most of.
    pub aim: Aim,
    /// The size of the cache in bytes.
    pub bytes_max: u64,
    /// The size of a block, which [`Layout::new`] accepts.
    block_bytes: u64,
    /// What random choices start from.
    pub seed: u64,
    /// The share of the sessions after which the cache is warm, and counting begins; 0 to 1.
    pub warm_up: f64,
}

/// Most films have been begun by then.
const WARM_UP: f64 = 0.3;

impl CacheScenario {
    /// Each object's own policy, with blocks of this size; `compare_caches` fills in the rest.
    ///
    /// # Errors
    /// A size that is no power of two, or out of range.
    pub fn new(block_bytes: u64, aim: Aim, seed: u64) -> Result<Self, BlockSizeError> {
        Layout::new(block_bytes, Grouping::UNIFORM)?;
        Ok(Self { policy: PolicyChoice::default(), aim, bytes_max: 1, block_bytes, seed, warm_up: WARM_UP })
    }

    /// This scenario with another policy and size.
    #[must_use]
    pub fn with(self, policy: PolicyChoice, bytes_max: u64) -> Self {
        Self { policy, bytes_max, ..self }
    }

    /// The division of most objects.
    pub(super) fn layout(&self) -> Layout {
        Layout::new(self.block_bytes, self.policy.of_object(false).grouping).expect("checked by new")
    }

    /// The policy of most objects.
    pub(super) fn policy_name(&self) -> PolicyName {
        self.policy.of_object(false).name
    }

    /// The policy of an object.
    pub(super) fn policy_of(&self, object: &Object) -> CachePolicy {
        let media_type: &[u8] = if object.is_media { b"video/" } else { b"" };
        self.policy.of_object(is_film(media_type, Some(object.bytes), self.block_bytes))
    }
}
