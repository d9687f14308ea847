//! What guards a site, or a route of it: which clients may ask, and for what.

use baton_site::guards;
use baton_site::guards::{Access, AllowedMethods, RateKey};

use super::basic_auth::{BasicAuth, BasicAuthKind};
use super::client_addresses::{ClientAddress, ClientAddressKind, address_set, held_twice, holder_in};
use super::condition::{When, WhenKind};
use super::cors::{Cors, CorsKind};
use super::duration::Milliseconds;
use super::error::Complaint;
use super::kind::{Bytes, Kind, ListOf, Or, Reading};
use super::method_name::MethodName;
use super::rate_limit::RateLimit;
use super::setting::{Inline, Section, Table, settings};
use super::words::{Word, words};

words! {
    /// Which of its guards a client has to satisfy.
    Satisfy {
        /// both
        All = "all",
        /// one of them: who is at such an address needs no password, and who has a password may be anywhere
        Any = "any",
    }
}

settings! {
    /// What guards a site. A route inherits unset keys from its site.
    Guards in "site" {
        /// Methods that are taken: `["GET", "POST"]`. `GET` brings `HEAD` along. Others: 405. `any`: what files, and fixed
        /// answers below 400, know (GET, HEAD, OPTIONS), and all methods where an application or an origin answers, or nothing
        /// but a redirect or an error.
        methods: Option<Vec<String>> = None, Or("any", ListOf(MethodName));
        /// Clients that are let in, by address: `["10.0.0.0/8", "::1"]`; `unix:` are those of Unix sockets. Others: 403. `all`:
        /// every client.
        allow: Option<Vec<ClientAddress>> = None, Or("all", ListOf(ClientAddressKind));
        /// Clients that are kept out: 403. That has precedence over `allow`.
        deny: Vec<ClientAddress> = Vec::new(), ListOf(ClientAddressKind);
        /// Requests that are refused: 403. `{ user_agent = { file = "/etc/baton/crawlers.txt" } }`.
        deny_when: Option<When> = None, Or("never", WhenKind);
        /// How often a client may ask: `{ requests = 10, per = "1s", burst = 20 }`. Beyond it: 429. The buckets are shared by all
        /// workers, and by all routes that have the limit from their site.
        rate_limit: Option<RateLimit> = None, Or("off", Inline::<RateLimit>::new());
        /// Users that have to say their name and password: `{ users = { ada = "$2y$12$…" }, file = "/etc/baton/htpasswd" }`. Others:
        /// 401. `off`: none, also below a site that has some.
        basic_auth: Option<BasicAuth> = None, Or("off", BasicAuthKind);
        /// Where there are both, what a client has to have: an address that `allow` names, and `deny` does not, or a
        /// password.
        satisfy: Satisfy = Satisfy::All, Word::<Satisfy>::new();
        /// Bytes of a request body. Beyond it: 413. `auto`: `limits.body_bytes_max`; where an application or an origin answers,
        /// what its own `body_bytes_max` says, which has precedence in any case.
        body_bytes_max: Option<u64> = None, Or("auto", Bytes(0, 1 << 50));
        /// Milliseconds between two reads of a body that an application or an origin gets. Then: 408. `auto`: `timeouts.body_ms`.
        body_ms: Option<u64> = None, Or("auto", Milliseconds(1, DAY_MS));
        /// Which pages of other origins may read responses (CORS): `"*"`, `["https://app.example", "https://*.example.com"]`, or
        /// a table with more. Preflights are answered by the server itself, also where a password is asked for.
        cors: Option<Cors> = None, Or("off", CorsKind);
    }
}

impl Guards {
    /// Reads the settings, and complains about rules without effect among those that stand here.
    pub(crate) fn read_checked(table: &mut Table<'_>, base: Self, reading: &mut Reading<'_>) -> Self {
        let guards = Self::read(table, base, reading);
        if ["allow", "deny"].iter().any(|key| table.has(key) && !table.has_refused(key, reading)) {
            guards.check_addresses(table, reading);
        }
        let counts_users = guards.rate_limit.as_ref().is_some_and(|limit| limit.key == RateKey::User);
        let is_written = ["rate_limit", "basic_auth"].iter().find_map(|key| table.span_of(key));
        if let Some(place) = is_written.filter(|_| counts_users && guards.basic_auth.is_none()) {
            let complaint = Complaint::new("`rate_limit` counts by user, and no user is known");
            let complaint = complaint.at(place, "there is no `basic_auth` here");
            reading.complain(complaint.help("add `basic_auth`, or count by `address`"));
        }
        if let Some(place) = table.span_of("satisfy").filter(|_| guards.satisfy == Satisfy::Any) {
            let missing = match (guards.allow.is_some(), guards.basic_auth.is_some()) {
                (true, true) => None,
                (false, true) => Some("`allow` names no address here"),
                (_, false) => Some("there is no `basic_auth` here"),
            };
            if let Some(missing) = missing {
                let complaint = Complaint::new("`satisfy` has nothing to choose from").at(place, missing);
                reading
                    .complain(complaint.help("write it where addresses and a password guard the same place"));
            }
        }
        guards
    }

    fn restricts_addresses(&self) -> bool {
        self.allow.is_some() || !self.deny.is_empty()
    }

    fn check_addresses(&self, table: &Table<'_>, reading: &mut Reading<'_>) {
        let place = |key: &str| table.span_of(key).unwrap_or_default();
        let mut complain = |key: &str, title: String, label: String, help: &str| {
            // An inherited list is no mistake of this table.
            if table.has(key) {
                reading.complain(Complaint::new(title).at(place(key), label).help(help));
            }
        };
        if self.allow.as_ref().is_some_and(Vec::is_empty) {
            complain(
                "allow",
                "`allow` lets no client in".into(),
                "is empty".into(),
                "name clients, write `allow = \"all\"`, or use `respond = { status = 403 }`",
            );
        }
        let allow = self.allow.as_deref().unwrap_or_default();
        for (key, list) in [("allow", allow), ("deny", &self.deny[..])] {
            for (client, by) in held_twice(list) {
                let title = format!("{} in `{key}` has no effect", shown(&client));
                complain(key, title, format!("{} holds it already", shown(&by)), "remove it");
            }
        }
        let denied = address_set(&self.deny);
        for client in allow {
            if let Some(by) = holder_in(&denied, client) {
                let title = format!("{} is allowed and denied", shown(client));
                let label = format!("`deny` has {}, which has precedence", shown(&by));
                complain("allow", title, label, "remove it from one of the lists");
            }
        }
        let allowed = address_set(allow);
        let meets = |client: &ClientAddress| match client {
            ClientAddress::Range(range) => allowed.ranges.meets(range),
            ClientAddress::Local => allowed.has_local,
        };
        for client in self.deny.iter().filter(|client| !allow.is_empty() && !meets(client)) {
            let title = format!("{} in `deny` has no effect", shown(client));
            complain("deny", title, "`allow` does not let it in".into(), "remove it");
        }
    }

    /// What the engine makes of it, but for users and rates.
    pub(crate) fn plan(&self) -> guards::Guards {
        guards::Guards {
            access: self.restricts_addresses().then(|| Access {
                allow: self.allow.as_deref().map(address_set),
                deny: address_set(&self.deny),
            }),
            denied: self.deny_when.as_ref().map(When::plan),
            methods: self.methods.as_deref().map(AllowedMethods::new),
            body_bytes_max: self.body_bytes_max,
            is_either: self.satisfy == Satisfy::Any,
            ..guards::Guards::default()
        }
    }

    /// What of them holds where clients are sent to TLS: no password is asked for in clear, and a request is counted once.
    pub(crate) fn before_tls(&self) -> Self {
        let mut rules =
            Self { basic_auth: None, rate_limit: None, cors: None, methods: None, ..self.clone() };
        // A password may let in there what an address does not here.
        if self.satisfy == Satisfy::Any && self.basic_auth.is_some() {
            (rules.allow, rules.deny) = (None, Vec::new());
        }
        rules
    }

    /// Whether some clients are kept out.
    pub(crate) fn keeps_out(&self) -> bool {
        self.restricts_addresses() || self.deny_when.is_some() || self.basic_auth.is_some()
    }
}

const DAY_MS: u64 = 86_400_000;

fn shown(client: &ClientAddress) -> String {
    let written = ClientAddressKind.write(client);
    written.as_str().unwrap_or_default().trim_end_matches("/32").trim_end_matches("/128").to_owned()
}
