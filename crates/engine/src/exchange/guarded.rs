//! Requests judged by the guards of their route: the only place where that is done.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use baton_http::{RequestHead, Status};

use super::page::Page;
use crate::guards::{Guards, RealAddress};

/// Who has made a request, where that is not just the other end of the connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Visitor {
    /// The client behind a proxy.
    pub(super) address: Option<SocketAddr>,
}

impl Visitor {
    /// The visitor whom a trusted proxy names; `None`: the other end of the connection.
    pub(super) fn behind(
        rule: &RealAddress,
        peer: Option<SocketAddr>,
        head: &RequestHead<'_>,
    ) -> Option<Arc<Self>> {
        rule.of(peer, head).map(|address| Arc::new(Self { address: Some(address) }))
    }
}

/// Lets the request pass.
///
/// # Errors
/// The answer that it gets instead.
pub(super) fn judge<'a>(
    guards: &'a Guards,
    address: Option<IpAddr>,
    head: &RequestHead<'_>,
    opens_tunnel: bool,
) -> Result<(), Page<'a>> {
    if guards.access.as_ref().is_some_and(|access| !access.admits(address)) {
        return Err(Page::error(Status::FORBIDDEN));
    }
    if let Some(methods) = &guards.methods
        && !methods.contains(method_of(head, opens_tunnel))
    {
        return Err(Page::method_refused(methods.all()));
    }
    Ok(())
}

/// The method as the client has spelled it. An extended CONNECT is the `GET` that asks for the same over HTTP/1 (RFC 8441).
fn method_of<'a>(head: &RequestHead<'a>, opens_tunnel: bool) -> &'a [u8] {
    match opens_tunnel {
        true => b"GET",
        false => head.line.split(|byte| *byte == b' ').next().unwrap_or_default(),
    }
}
