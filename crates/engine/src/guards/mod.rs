//! What guards a route: judged once for each request, before the server looks for its answer.
//!
//! ```text
//!   head ─► site ─► real address ─► route ─► access ─► methods ─► the route's action
//!                                              403       405
//! ```
//!
//! These are the rules; the module `exchange::guarded` judges requests by them. A route without rules has no [`Guards`] at
//! all, and costs its requests one comparison.

mod access;
mod methods;
mod real_address;

use std::sync::Arc;

pub use access::Access;
pub use methods::AllowedMethods;
pub use real_address::RealAddress;

/// The rules of a route.
#[derive(Debug, Default)]
pub struct Guards {
    /// Which clients may ask.
    pub access: Option<Access>,
    /// For what.
    pub methods: Option<AllowedMethods>,
}

impl Guards {
    /// The rules for a plan; `None`: there are none.
    pub fn shared(self) -> Option<Arc<Self>> {
        let Self { access, methods } = &self;
        let guards_something = access.is_some() || methods.is_some();
        guards_something.then(|| Arc::new(self))
    }
}
