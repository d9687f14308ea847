//! What guards a route: judged once for each request, before the server looks for its answer.
//!
//! ```text
//!   head ─► site ─► real address ─► route ─► access ─► rate ─► methods ─► password ─► the user's rate ─► action
//!                                              403      429      405      401, a job        429
//! ```
//!
//! Where one of two is enough (`is_either`), a client that access lets in needs no password, and any other one does.
//!
//! These are the rules; an exchange judges requests by them. A route without rules has no [`Guards`] at
//! all, and costs its requests one comparison.

mod access;
mod basic_auth;
mod methods;
mod rate;
mod real_address;

use std::net::IpAddr;
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
    /// Whether a client that `allow` of `access` names needs no password, and one with a password may have any address.
    pub is_either: bool,
}

impl Guards {
    /// The rules for a plan; `None`: there are none.
    pub fn shared(self) -> Option<Arc<Self>> {
        let Self { access, denied, methods, body_bytes_max, rate_limit, basic_auth, is_either: _ } = &self;
        let guards_something = access.is_some()
            || denied.is_some()
            || methods.is_some()
            || body_bytes_max.is_some()
            || rate_limit.is_some()
            || basic_auth.is_some();
        guards_something.then(|| Arc::new(self))
    }

    /// Whether a client at this address may ask, if it says the password that it is asked for; `None`: one of a Unix socket.
    pub fn admits(&self, address: Option<IpAddr>) -> bool {
        self.is_either && self.basic_auth.is_some()
            || self.access.as_ref().is_none_or(|access| access.admits(address))
    }

    /// The users of whom a client at this address has to be one.
    pub fn users_for(&self, address: Option<IpAddr>) -> Option<&Arc<BasicAuth>> {
        let is_named = |access: &Access| access.allow.is_some() && access.admits(address);
        let is_spared = || self.is_either && self.access.as_ref().is_some_and(is_named);
        self.basic_auth.as_ref().filter(|_| !is_spared())
    }
}

#[cfg(test)]
mod tests {
    use baton_password::Users;

    use super::*;
    use crate::address_range::AddressSet;

    /// Goal: where one of two is enough, a password is asked for only of clients whom no list names. Method: lists that name the
    /// client, name another, keep it out, or are not there.
    #[test]
    fn an_address_or_a_password_is_enough() {
        let client = Some([192, 0, 2, 1].into());
        let set = |ranges: &[&str]| AddressSet {
            ranges: ranges.iter().map(|range| range.parse().unwrap()).collect(),
            has_local: false,
        };
        let basic_auth = Some(Arc::new(BasicAuth::new("all", Users::new(Vec::new()))));
        let verdict = |allow: Option<&[&str]>, deny: &[&str], is_either: bool| {
            let access = Some(Access { allow: allow.map(set), deny: set(deny) });
            let guards = Guards { access, basic_auth: basic_auth.clone(), is_either, ..Guards::default() };
            (guards.admits(client), guards.users_for(client).is_some())
        };
        let (here, elsewhere) = (&["192.0.2.0/24"][..], &["10.0.0.0/8"][..]);
        assert_eq!(verdict(Some(here), &[], true), (true, false), "its address is enough");
        for (allow, deny) in [(Some(elsewhere), &[][..]), (Some(here), here), (None, here), (None, elsewhere)]
        {
            assert_eq!(verdict(allow, deny, true), (true, true), "{allow:?} {deny:?}");
        }
        assert_eq!(verdict(Some(here), &[], false), (true, true), "both are needed");
        assert_eq!(verdict(Some(elsewhere), &[], false), (false, true));
        let without_users = Guards {
            access: Some(Access { allow: Some(set(elsewhere)), deny: set(&[]) }),
            is_either: true,
            ..Guards::default()
        };
        assert!(!without_users.admits(client), "there is no other way in");
    }
}
