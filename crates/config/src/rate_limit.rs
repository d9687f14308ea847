//! `rate_limit`: how often a client may ask.

use baton_site::guards;
use baton_site::guards::{RateKey, RateTable};

use super::condition::{When, WhenKind};
use super::duration::Milliseconds;
use super::kind::{Integer, Kind, Or, Reading};
use super::raw::Node;
use super::setting::settings;
use super::shown::Shown;
use super::text::Text;

settings! {
    /// How often requests with the same key pass: a token bucket. Others: 429, with `Retry-After`.
    RateLimit in "site.rate_limit" needs ["requests"] {
        /// Requests that pass in the time that `per` says.
        requests: u64 = 10, Integer(1, 1_000_000);
        /// Milliseconds, or a duration: `"1s"`, `"1m"`.
        per: u64 = 1_000, Milliseconds(1, 86_400_000);
        /// Requests that may come at once after a pause. `auto`: as many as `requests`.
        burst: Option<u64> = None, Or("auto", Integer(1, 1_000_000));
        /// What is counted together. `address`: requests of a client's address, of IPv6 of its network (the first 64 bits).
        /// `user`: those of a user of `basic_auth`. `header:NAME`: those with the same value in this field, and by address those
        /// without it; an address has at most as many as sixteen values.
        key: RateKey = RateKey::Address, RateKeyKind;
        /// Which requests are counted; others pass. `{ user_agent = { file = "/etc/baton/crawlers.txt" } }`.
        when: Option<When> = None, Or("always", WhenKind);
    }
}

impl RateLimit {
    /// What the engine makes of it. `scope`: where it stands, by a name that stays the same over a reload.
    pub(crate) fn plan(&self, scope: &str, table: RateTable) -> guards::RateLimit {
        guards::RateLimit {
            scope: scope.to_owned(),
            interval_us: (self.per * 1_000).div_ceil(self.requests),
            burst: self.burst.unwrap_or(self.requests),
            key: self.key.clone(),
            when: self.when.as_ref().map(When::plan),
            table,
        }
    }
}

/// What requests of one bucket have in common.
struct RateKeyKind;

impl Kind for RateKeyKind {
    type Value = RateKey;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "\"address\", \"user\" or \"header:NAME\"".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<RateKey> {
        let text = Text.read(node, reading)?;
        let is_field = |name: &&str| !name.is_empty() && name.bytes().all(baton_http::is_token_byte);
        match (&*text, text.strip_prefix(HEADER).filter(is_field)) {
            ("address", _) => Some(RateKey::Address),
            ("user", _) => Some(RateKey::User),
            (_, Some(name)) => Some(RateKey::Field(name.to_owned())),
            _ => {
                let complaint = reading.complaint("is no key");
                let complaint = complaint.at(node.span(), format!("expected {}", self.accepted()));
                reading.complain(complaint.did_you_mean(&text, ["address", "user", HEADER]));
                None
            }
        }
    }

    fn write(&self, value: &RateKey) -> toml::Value {
        match value {
            RateKey::Address => "address".into(),
            RateKey::User => "user".into(),
            RateKey::Field(name) => format!("{HEADER}{name}").into(),
        }
    }
}

const HEADER: &str = "header:";
