//! Interim responses (1xx) of a fetch, for all clients that wait for its head.
//!
//! They come before the response says whether it is for all. So a client gets those to a request of another client only if
//! both have sent the same cookies; requests with `Authorization` are not waited for at all.

use baton_http::RequestHead;
use baton_http::origin::ResponseHead;

use crate::Ask;
use crate::fill::{Fill, ReaderName};

/// The next interim response for a client that waits for a fetch which another client has begun.
pub(crate) fn next(fill: &Fill, reader: &ReaderName, ask: &Ask) -> Option<ResponseHead> {
    let (first, own) = (fill.ask.head.get(), ask.head.get());
    cookies(&first).eq(cookies(&own)).then(|| fill.next_interim(reader)).flatten()
}

fn cookies<'a>(head: &RequestHead<'a>) -> impl Iterator<Item = &'a [u8]> {
    head.fields().filter(|(name, _)| name.eq_ignore_ascii_case("Cookie")).map(|(_, value)| value)
}
