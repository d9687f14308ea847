//! Requests judged by the guards of their route: the only place where that is done.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use baton_http::{RequestHead, Status};
use baton_response::Page;
use baton_site::condition::Asker;
use baton_site::guards::{Guards, RateLimit, RealAddress, Standing, Verification};

/// Who has made a request, where that is not just the other end of the connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Visitor {
    /// The client behind a proxy.
    pub(super) address: Option<SocketAddr>,
    /// The user whose password was right.
    pub(super) user: Option<Box<str>>,
}

/// What a request's guards ask for.
#[derive(Debug)]
pub(super) enum Demand<'a> {
    /// It gets this answer.
    Refusal(Page<'a>),
    /// A job that verifies its user's password.
    Verification(Verification),
}

/// What is known of a request's user.
#[derive(Debug)]
pub(super) enum Login<'a> {
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
pub(super) struct Asking<'a> {
    /// The client's address; `None`: a Unix socket.
    pub(super) address: Option<IpAddr>,
    pub(super) head: &'a RequestHead<'a>,
    /// It is an extended CONNECT.
    pub(super) opens_tunnel: bool,
    /// It is a browser's question whether a page may ask. It never has credentials, and the server itself answers it.
    pub(super) is_preflight: bool,
    pub(super) now_ms: u64,
}

impl Visitor {
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
    asking: Asking<'_>,
    login: Login<'_>,
) -> Result<Option<Box<str>>, Demand<'a>> {
    let refused = |page| Err(Demand::Refusal(page));
    if guards.access.as_ref().is_some_and(|access| !access.admits(asking.address)) {
        return refused(Page::error(Status::FORBIDDEN));
    }
    let asker = Asker { head: asking.head, address: asking.address };
    if guards.denied.as_ref().is_some_and(|denied| denied.holds(&asker)) {
        return refused(Page::error(Status::FORBIDDEN));
    }
    let (is_redirected, counted) = match &login {
        Login::Redirected => (true, None),
        Login::Rewritten { counted } => (false, *counted),
        Login::New | Login::Verified(_) => (false, None),
    };
    let take = |limit: &RateLimit, user: Option<&str>| match is_redirected
        || counted == Some(limit.scope.as_str())
    {
        true => Ok(()),
        false => limit
            .take(asking.head, asking.address, user, asking.now_ms)
            .map_err(|exceeded| Demand::Refusal(Page::too_many_requests(exceeded.retry_after_s))),
    };
    // A guess of a password takes a token, too.
    if let Some(limit) = guards.rate_limit.as_ref().filter(|limit| !limit.is_by_user())
        && matches!(login, Login::New | Login::Rewritten { .. })
    {
        take(limit, None)?;
    }
    if asking.is_preflight {
        return Ok(None);
    }
    if let Some(methods) = &guards.methods
        && !methods.contains(method_of(asking.head, asking.opens_tunnel))
    {
        return refused(Page::method_refused(methods.all()));
    }
    let Some(auth) = &guards.basic_auth else { return Ok(None) };
    let user = match login {
        Login::Verified(user) => user,
        Login::New | Login::Redirected | Login::Rewritten { .. } => {
            match auth.standing(asking.head, asking.address, asking.now_ms) {
                Standing::Known(user) => Some(user),
                Standing::Absent => None,
                Standing::Busy { is_its_share: true } => return refused(Page::too_many_requests(1)),
                Standing::Busy { is_its_share: false } => {
                    return refused(Page::error(Status::SERVICE_UNAVAILABLE));
                }
                Standing::Unverified(verification) => return Err(Demand::Verification(verification)),
            }
        }
    };
    let Some(user) = user else { return refused(Page::unauthorized(auth.challenge())) };
    if let Some(limit) = guards.rate_limit.as_ref().filter(|limit| limit.is_by_user()) {
        take(limit, Some(&user))?;
    }
    Ok(Some(user))
}

/// The method as the client has spelled it. An extended CONNECT is the `GET` that asks for the same over HTTP/1 (RFC 8441).
fn method_of<'a>(head: &RequestHead<'a>, opens_tunnel: bool) -> &'a [u8] {
    match opens_tunnel {
        true => b"GET",
        false => head.line.split(|byte| *byte == b' ').next().unwrap_or_default(),
    }
}
