//! Requests judged by the guards of their route: the only place where that is done.

use std::net::SocketAddr;
use std::sync::Arc;

use baton_http::{RequestHead, Status};
use baton_response::Page;
use baton_site::condition::RequestView;
use baton_site::guards::{Guards, RateLimit, RealAddress, Standing, Verification};

/// Who has made a request, where that is not just the other end of the connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Identity {
    /// The client behind a proxy.
    pub(super) address: Option<SocketAddr>,
    /// The user whose password was right.
    pub(super) user: Option<Box<str>>,
}

/// What a request's guards ask for.
#[derive(Debug)]
pub(super) enum Rejection<'a> {
    /// It gets this answer.
    Refusal(Page<'a>),
    /// A job that verifies its user's password.
    Verification(Verification),
}

/// What is known of a request's user.
#[derive(Debug)]
pub(super) enum Authentication<'a> {
    /// Nothing: the request is new, and has taken no token.
    New,
    /// Its password was verified; `None`: it is wrong.
    Verified(Option<Box<str>>),
    /// Nothing, and the request has taken its token: an application has redirected it.
    Redirected,
    /// Nothing, and the request has taken its token of this scope: a route has rewritten it.
    Rewritten { counted: Option<&'a str> },
}

/// What rules are about.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccessRequest<'a> {
    pub(super) view: RequestView<'a>,
    /// It is a browser's question whether a page may ask. It never has credentials, and the server itself answers it.
    pub(super) is_preflight: bool,
    pub(super) now_ms: u64,
}

impl Identity {
    /// The visitor whom a trusted proxy names; `None`: the other end of the connection.
    pub(super) fn behind(
        rule: &RealAddress,
        peer: Option<SocketAddr>,
        head: &RequestHead<'_>,
    ) -> Option<Arc<Self>> {
        rule.of(peer, head).map(|address| Arc::new(Self { address: Some(address), user: None }))
    }
}

/// Lets the request pass, and returns its user if it needs one.
///
/// # Errors
/// What has to happen instead.
pub(super) fn judge<'a>(
    guards: &'a Guards,
    access_request: AccessRequest<'_>,
    authentication: Authentication<'_>,
) -> Result<Option<Box<str>>, Rejection<'a>> {
    let AccessRequest { view, is_preflight, now_ms } = access_request;
    let refused = |page| Err(Rejection::Refusal(page));
    if !guards.admits(view.address) {
        return refused(Page::error(Status::FORBIDDEN));
    }
    if guards.denied.as_ref().is_some_and(|denied| denied.holds(&view)) {
        return refused(Page::error(Status::FORBIDDEN));
    }
    let (is_redirected, counted) = match &authentication {
        Authentication::Redirected => (true, None),
        Authentication::Rewritten { counted } => (false, *counted),
        Authentication::New | Authentication::Verified(_) => (false, None),
    };
    let take = |limit: &RateLimit, user: Option<&str>| match is_redirected
        || counted == Some(limit.scope.as_str())
    {
        true => Ok(()),
        false => limit
            .take(&view, user, now_ms)
            .map_err(|exceeded| Rejection::Refusal(Page::too_many_requests(exceeded.retry_after_s))),
    };
    // A guess of a password takes a token, too.
    if let Some(limit) = guards.rate_limit.as_ref().filter(|limit| !limit.is_by_user())
        && matches!(authentication, Authentication::New | Authentication::Rewritten { .. })
    {
        take(limit, None)?;
    }
    if is_preflight {
        return Ok(None);
    }
    if let Some(methods) = &guards.methods
        && !methods.contains(view.method())
    {
        return refused(Page::method_refused(methods.all()));
    }
    let Some(auth) = guards.users_for(view.address) else { return Ok(None) };
    let user = match authentication {
        Authentication::Verified(user) => user,
        Authentication::New | Authentication::Redirected | Authentication::Rewritten { .. } => {
            match auth.standing(&view, now_ms) {
                Standing::Known(user) => Some(user),
                Standing::Absent => None,
                Standing::Busy { is_its_share: true } => return refused(Page::too_many_requests(1)),
                Standing::Busy { is_its_share: false } => {
                    return refused(Page::error(Status::SERVICE_UNAVAILABLE));
                }
                Standing::Unverified(verification) => return Err(Rejection::Verification(verification)),
            }
        }
    };
    let Some(user) = user else { return refused(Page::unauthorized(auth.challenge())) };
    if let Some(limit) = guards.rate_limit.as_ref().filter(|limit| limit.is_by_user()) {
        take(limit, Some(&user))?;
    }
    Ok(Some(user))
}

#[cfg(test)]
mod tests {
    use baton_http::HeadLimits;
    use baton_site::address_range::{AddressSet, OuterRanges};
    use baton_site::guards::{Access, AllowedMethods, RateKey, RateTable};

    use super::*;

    const CLIENT: [u8; 4] = [192, 0, 2, 1];

    /// Two requests at once, in these buckets; only these methods.
    fn guards(scope: &str, methods: &[&str]) -> Guards {
        let limit = RateLimit {
            scope: scope.into(),
            interval_us: 60_000_000,
            burst: 2,
            key: RateKey::Address,
            when: None,
            table: RateTable::allocate().unwrap(),
        };
        let methods: Vec<_> = methods.iter().map(|&name| name.to_owned()).collect();
        let methods = (!methods.is_empty()).then(|| AllowedMethods::new(&methods));
        Guards { rate_limit: Some(limit), methods, ..Guards::default() }
    }

    /// The status of the refusal; `None`: the request passes.
    fn judged(guards: &Guards, line: &str, is_preflight: bool, is: Authentication<'_>) -> Option<String> {
        let text = format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n");
        let head = RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap();
        let view = RequestView { head: &head, address: Some(CLIENT.into()), has_certificate: false };
        match judge(guards, AccessRequest { view, is_preflight, now_ms: 1_000 }, is) {
            Ok(_) => None,
            Err(Rejection::Refusal(page)) => {
                let shown = format!("{page:?}");
                let statuses = ["403", "405", "429"].into_iter();
                Some(statuses.filter(|status| shown.contains(*status)).collect())
            }
            Err(Rejection::Verification(_)) => panic!("there are no users"),
        }
    }

    fn judge_new(guards: &Guards, line: &str) -> Option<String> {
        judged(guards, line, false, Authentication::New)
    }

    /// Goal: the cheapest rule decides first, and a client that may not ask at all takes no token of those who may.
    #[test]
    fn rules_are_judged_in_their_order() {
        let everyone =
            AddressSet { ranges: OuterRanges::from_iter(["0.0.0.0/0".parse().unwrap()]), has_local: false };
        let closed = Guards { access: Some(Access { allow: None, deny: everyone }), ..guards("a", &["GET"]) };
        assert!(
            (0..3).all(|_| judge_new(&closed, "PUT /").as_deref() == Some("403")),
            "never 405, never 429"
        );
        let open = Guards { access: None, ..closed };
        assert_eq!(judge_new(&open, "GET /"), None);
        // A method that is refused has taken a token.
        assert_eq!(judge_new(&open, "PUT /").as_deref(), Some("405"));
        assert_eq!(judge_new(&open, "PUT /").as_deref(), Some("429"));
    }

    /// Goal: a request takes one token, on whatever way it comes to its answer; a rewrite into another scope takes one there.
    #[test]
    fn a_request_takes_one_token_of_each_scope() {
        let limited = guards("a", &[]);
        for is in [
            || Authentication::Redirected,
            || Authentication::Verified(None),
            || Authentication::Rewritten { counted: Some("a") },
        ] {
            assert!((0..5).all(|_| judged(&limited, "GET /", false, is()).is_none()));
        }
        let elsewhere = || Authentication::Rewritten { counted: Some("b") };
        let verdicts = [0, 1, 2].map(|_| judged(&limited, "GET /", false, elsewhere()));
        assert_eq!(verdicts, [None, None, Some("429".to_owned())]);
    }

    /// Goal: a browser's question passes methods, since the server answers it, but not rates.
    #[test]
    fn preflights_are_counted_and_pass_methods() {
        let limited = guards("a", &["GET"]);
        let verdicts = [0, 1, 2].map(|_| judged(&limited, "OPTIONS /", true, Authentication::New));
        assert_eq!(verdicts, [None, None, Some("429".to_owned())]);
    }
}
