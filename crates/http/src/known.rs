//! One pass over the field lines of a request that picks out those that Baton acts on.

use crate::fields::list_members;
use crate::{Conditions, Refusal};

/// The fields that matter, before they are judged together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownFields<'a> {
    pub(crate) host: Option<&'a [u8]>,
    pub(crate) content_length: Option<&'a [u8]>,
    pub(crate) transfer_encoding: Option<&'a [u8]>,
    pub(crate) closes: bool,
    pub(crate) keeps_alive: bool,
    pub(crate) expects_continue: bool,
    pub(crate) range: Option<&'a [u8]>,
    pub(crate) conditions: Conditions<'a>,
    pub(crate) accept: Option<&'a [u8]>,
    pub(crate) accept_encoding: Option<&'a [u8]>,
    pub(crate) referer: Option<&'a [u8]>,
    pub(crate) user_agent: Option<&'a [u8]>,
}

impl<'a> KnownFields<'a> {
    /// `section` is the text of the fields, for the rare ones that must be parsed again.
    pub(crate) fn select(
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        section: &'a [u8],
    ) -> Result<Self, Refusal> {
        let mut known = Self::default();
        for (name, value) in fields {
            let is = |known_name: &str| name.eq_ignore_ascii_case(known_name.as_bytes());
            // Lengths tell most names apart: an unknown field costs a comparison or two.
            match name.len() {
                4 if is("Host") => set_once(&mut known.host, value, Refusal::HostRepeated)?,
                5 if is("Range") => set_single(&mut known.range, value),
                6 if is("Accept") => set_first(&mut known.accept, value),
                6 if is("Expect") => known.expect(value)?,
                7 if is("Referer") => set_first(&mut known.referer, value),
                8 if is("If-Match") => known.conditions.add_if_match(value, section),
                8 if is("If-Range") => set_single(&mut known.conditions.if_range, value),
                10 if is("Connection") => known.connection(value),
                10 if is("User-Agent") => set_first(&mut known.user_agent, value),
                13 if is("If-None-Match") => known.conditions.add_if_none_match(value, section),
                14 if is("Content-Length") => {
                    set_once(&mut known.content_length, value, Refusal::LengthRepeated)?;
                }
                15 if is("Accept-Encoding") => set_first(&mut known.accept_encoding, value),
                17 if is("If-Modified-Since") => set_single(&mut known.conditions.if_modified_since, value),
                17 if is("Transfer-Encoding") => {
                    // Several lines make one list, which no `chunked` alone can be.
                    let line = if known.transfer_encoding.is_none() { value } else { NO_VALUE };
                    known.transfer_encoding = Some(line);
                }
                19 if is("If-Unmodified-Since") => {
                    set_single(&mut known.conditions.if_unmodified_since, value);
                }
                _ => {}
            }
        }
        Ok(known)
    }

    /// RFC 9110 section 10.1.1.
    fn expect(&mut self, value: &[u8]) -> Result<(), Refusal> {
        if !list_members(value).all(|expectation| expectation.eq_ignore_ascii_case(b"100-continue")) {
            return Err(Refusal::ExpectationUnknown);
        }
        self.expects_continue = true;
        Ok(())
    }

    /// RFC 9110 section 7.6.1.
    fn connection(&mut self, value: &[u8]) {
        for option in list_members(value) {
            self.closes |= option.eq_ignore_ascii_case(b"close");
            self.keeps_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }
}

/// A field whose repetition other recipients may interpret differently.
fn set_once<'a>(slot: &mut Option<&'a [u8]>, value: &'a [u8], refusal: Refusal) -> Result<(), Refusal> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(refusal),
    }
}

/// A field that has one value: sent twice it has none, and is ignored like any malformed one.
fn set_single<'a>(slot: &mut Option<&'a [u8]>, value: &'a [u8]) {
    *slot = Some(if slot.is_none() { value } else { NO_VALUE });
}

/// A field whose first line is enough.
fn set_first<'a>(slot: &mut Option<&'a [u8]>, value: &'a [u8]) {
    slot.get_or_insert(value);
}

/// Malformed in every grammar that has something to decide here.
const NO_VALUE: &[u8] = b"";
