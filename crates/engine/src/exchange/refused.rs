//! Answers to input that is no request, and to a certificate authority: those that no route gives.

use baton_http::{Refusal, Status};

use super::env::Ready;
use super::notice::{self, Form};
use super::page;
use crate::context::Context;
use crate::log::Outcome;
use crate::plan::Plan;
use crate::protocol::Responder;

/// Why a request, or the rest of it, is refused.
#[derive(Debug)]
pub(crate) struct Refused<'a> {
    pub(crate) status: Status,
    pub(crate) why: &'a str,
    pub(crate) outcome: Outcome,
}

impl<'a> Refused<'a> {
    /// `why` is the refusal in words.
    pub(crate) fn by(refusal: Refusal, why: &'a str) -> Self {
        Self { status: refusal.status(), why, outcome: Outcome::Refused }
    }
}

/// Refuses input that is no request, or the rest of a request; the connection ends with the response.
pub(super) fn refuse(
    ctx: &mut Context,
    plan: &Plan,
    refused: &Refused<'_>,
    reply: &mut Responder<'_>,
) -> Ready {
    let Refused { status, why, outcome } = *refused;
    reply.refuse();
    let form = Form::Html;
    let body = notice::write(form, status, why);
    let mut joined = ctx.heads.take();
    let server = plan.server_header.then_some(page::SERVER);
    let mut head = reply.head(&mut joined, status, server, ctx.clock.stamp());
    ctx.push_mark(&mut head);
    head.field("Content-Type", form.media_type()).number("Content-Length", body.len() as u64).end();
    reply.send(&mut ctx.heads, joined, &body);
    Ready { outcome, ..Ready::from(status) }
}

/// Answers a certificate authority. It asks once, so the connection ends with the response.
pub(super) fn prove(ctx: &mut Context, plan: &Plan, proof: &str, reply: &mut Responder<'_>) -> Ready {
    reply.close_behind();
    let mut joined = ctx.heads.take();
    let server = plan.server_header.then_some(page::SERVER);
    let mut head = reply.head(&mut joined, Status::OK, server, ctx.clock.stamp());
    ctx.push_mark(&mut head);
    // RFC 8555, 8.3.
    head.field("Content-Type", "application/octet-stream").field("X-Content-Type-Options", "nosniff");
    head.number("Content-Length", proof.len() as u64).end();
    reply.send(&mut ctx.heads, joined, proof.as_bytes());
    Status::OK.into()
}
