//! Why an order failed: whom it makes wait, and what an operator can do.

use std::fmt;
use std::time::Duration;

use baton_report::OperatorError;
use instant_acme::{Error, Problem};

use crate::planner::FailureScope;

/// An order, or a question, that failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) scope: FailureScope,
    /// What the authority asked for; zero if nothing.
    pub(crate) retry_after: Duration,
    /// Whether the authority does not know the account any more.
    pub(crate) lost_account: bool,
    pub(crate) trouble: OperatorError,
}

impl Failure {
    /// A failure on our side, such as a file that cannot be written.
    pub(crate) fn ours(trouble: OperatorError) -> Self {
        Self { scope: FailureScope::Certificate, retry_after: Duration::ZERO, lost_account: false, trouble }
    }

    /// The failure of a step: `operation` completes "cannot".
    pub(crate) fn of(operation: impl fmt::Display, error: &Error, retry_after: Option<Duration>) -> Self {
        let (scope, trouble) = match error {
            Error::Api(problem) => judge(&operation, problem),
            Error::Unsupported(what) => {
                let what = format!("cannot {operation}: the authority does not support {what}");
                (FailureScope::Certificate, OperatorError::new(what))
            }
            // No answer, or none that the protocol knows: the page of a proxy, for instance.
            error => {
                let what = format!("cannot {operation}: {error}");
                let trouble = OperatorError::new(what)
                    .cause("the authority is down, or this server does not reach it")
                    .remedy(
                        "none is needed if it passes: it is tried again, and sites keep their certificates",
                    );
                (FailureScope::Authority, trouble)
            }
        };
        let lost_account = matches!(error, Error::Api(problem) if kind(problem) == "accountDoesNotExist");
        Self { scope, retry_after: retry_after.unwrap_or_default(), lost_account, trouble }
    }
}

/// The authority's own complaint (RFC 8555, 6.7).
fn judge(operation: &impl fmt::Display, problem: &Problem) -> (FailureScope, OperatorError) {
    let trouble = explain(OperatorError::new(format!("cannot {operation}: {}", sentence(problem))), problem);
    let scope = match kind(problem) {
        "rateLimited" => FailureScope::RateLimit,
        "serverInternal" | "badNonce" | "accountDoesNotExist" => FailureScope::Authority,
        _ if problem.status.is_some_and(|status| status >= 500) => FailureScope::Authority,
        _ => FailureScope::Certificate,
    };
    (scope, trouble)
}

/// The last part of the problem's type.
pub(crate) fn kind(problem: &Problem) -> &str {
    let kind = problem.r#type.as_deref().unwrap_or_default();
    kind.strip_prefix("urn:ietf:params:acme:error:").unwrap_or(kind)
}

/// What the authority says, with the names that it is about.
pub(crate) fn sentence(problem: &Problem) -> String {
    let detail = problem.detail.as_deref().unwrap_or("no reason given");
    let mut text = format!("{detail} ({})", kind(problem));
    for part in &problem.subproblems {
        let name = part.identifier.clone().map(|identifier| identifier.authorized(false).to_string());
        let detail = part.detail.as_deref().unwrap_or("no reason given");
        text += &format!("; {}: {detail}", name.as_deref().unwrap_or("a name"));
    }
    text
}

/// Adds what usually helps.
pub(crate) fn explain(trouble: OperatorError, problem: &Problem) -> OperatorError {
    match kind(problem) {
        "connection" => trouble
            .cause("the authority did not reach this server at the address of that name")
            .remedy("let port 80 (http-01) or 443 (tls-alpn-01) of that address lead to this server from everywhere"),
        "dns" => trouble.cause("the name's address could not be looked up").remedy("check its A and AAAA records"),
        "unauthorized" | "incorrectResponse" | "tls" => trouble
            .cause("another server, or a proxy in front of this one, answered for that name")
            .remedy("check its A and AAAA records: both must lead to this server"),
        "caa" => trouble
            .cause("a CAA record forbids this authority to issue for that name")
            .remedy("allow it in DNS, or use another authority"),
        "rateLimited" => trouble
            .cause("too many orders or failed proofs in a short time")
            .remedy("none is needed: it is tried again as soon as the authority allows. Test with its staging directory"),
        "rejectedIdentifier" => trouble.cause("the authority does not issue for that name"),
        "externalAccountRequired" => trouble
            .cause("the authority serves its customers only")
            .remedy("create a key there and set `external_account` in [acme]"),
        "invalidContact" | "unsupportedContact" => {
            trouble.cause("the authority does not accept the address").remedy("correct `email` in [acme]")
        }
        "invalidProfile" => {
            trouble.cause("the authority has no such profile").remedy("correct `profile` in [acme], or leave it out")
        }
        _ => trouble,
    }
}
