//! The protocol of the client, as far as a response is finished by it.

use baton_buf::Pool;
use baton_content::{HeadForm, Whole};
use baton_http::Status;
use baton_http::origin::ResponseHead;
use baton_http::response::{Client, Framing, HeadLines};

use crate::head::Beginning;

/// Where a finished response goes.
pub trait Reply {
    /// What framing depends on: the client's version, its method, and whether its connection goes on.
    fn client(&mut self) -> Client;

    /// The form of cached heads.
    fn head_form(&mut self) -> HeadForm;

    /// Whether what is sent by reference costs less than what is in memory, or may.
    fn may_send_by_reference(&self) -> bool;

    /// Sends a file with its cached head.
    fn send_whole(&mut self, whole: Whole);

    /// Sends a head, behind `fields` of the server, and what is there of the body.
    fn send_head(
        &mut self,
        heads: &mut Pool,
        head: HeadLines<'_>,
        framing: Framing,
        fields: &[u8],
        body: Beginning,
    );

    /// Sends the head of a response that switches protocols, behind `fields` of the server. Returns the status that the
    /// client sees.
    fn send_switch(&mut self, heads: &mut Pool, head: &ResponseHead, fields: &[u8]) -> Status;
}
