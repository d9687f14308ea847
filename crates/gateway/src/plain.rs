//! The plain transport: a request in records, the answer in records; or both as SCGI says.

use baton_fcgi::{Broken, request, scgi};

use crate::Request;
use crate::outgoing::Outgoing;

/// Writes a FastCGI request. `block`: its parameters, with an offer in front or without.
pub(crate) fn push_fastcgi(outgoing: &mut Outgoing, id: u16, keep: bool, block: &[u8], asked: &Request) {
    let first = outgoing.begin();
    request::push_begin(first, id, keep);
    request::push_params(first, id, block);
    outgoing.push_body(id, &asked.body, asked.rest.is_some());
}

/// Writes an SCGI request.
///
/// # Errors
/// A parameter has a byte in it that SCGI has no way to say.
pub(crate) fn push_scgi(outgoing: &mut Outgoing, asked: &Request) -> Result<(), Broken> {
    let first = outgoing.begin();
    scgi::push_request(first, &asked.params, asked.body_len())?;
    outgoing.push_raw_body(&asked.body, asked.rest.is_some());
    Ok(())
}
