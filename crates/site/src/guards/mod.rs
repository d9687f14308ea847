//! What guards a route: judged once for each request, before the server looks for its answer.
//!
//! ```text
//!   head ─► site ─► real address ─► route ─► access ─► rate ─► methods ─► password ─► the user's rate ─► action
//!                                              403      429      405      401, a job        429
//! ```
//!
//! These are the rules; an exchange judges requests by them. A route without rules has no [`Guards`] at
//! all, and costs its requests one comparison.

mod access;
mod basic_auth;
mod methods;
mod rate;
mod real_address;

use std::sync::Arc;

use crate::condition::Condition;

pub use access::Access;
pub use basic_auth::BasicAuth;
pub use methods::AllowedMethods;
pub use rate::{RateKey, RateLimit, RateTable};
pub use real_address::RealAddress;

pub use basic_auth::{Standing, Verification};

/// The rules of a route.
#[derive(Debug, Default)]
pub struct Guards {
    /// Which clients may ask.
    pub access: Option<Access>,
    /// Which requests are refused in any case.
    pub denied: Option<Arc<Condition>>,
    /// For what.
    pub methods: Option<AllowedMethods>,
    /// Bytes of a body that does not matter to the answer; `None`: as the limits say. Others have their
    /// [`UploadSettings`](crate::plan::UploadSettings).
    pub body_bytes_max: Option<u64>,
    /// How often.
    pub rate_limit: Option<RateLimit>,
    /// Which users.
    pub basic_auth: Option<Arc<BasicAuth>>,
}

impl Guards {
    /// The rules for a plan; `None`: there are none.
    pub fn shared(self) -> Option<Arc<Self>> {
        let Self { access, denied, methods, body_bytes_max, rate_limit, basic_auth } = &self;
        let guards_something = access.is_some()
            || denied.is_some()
            || methods.is_some()
            || body_bytes_max.is_some()
            || rate_limit.is_some()
            || basic_auth.is_some();
        guards_something.then(|| Arc::new(self))
    }
}
