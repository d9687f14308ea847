//! How many bytes the calls of a worker have moved.

use crate::common::server::wait_until;
use crate::proxy::Proxy;
use crate::trace::Call;

/// Bytes that a worker has moved.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    /// Copied from the connections of origins, or from files.
    pub(crate) read: usize,
    /// Copied to clients' connections, and requests to origins.
    pub(crate) sent: usize,
    pub(crate) into_pipe: usize,
    pub(crate) out_of_pipe: usize,
    /// Sent from files, by reference.
    pub(crate) from_files: usize,
    /// What the client got, head and all.
    pub(crate) received: usize,
}

impl Moved {
    /// For a response with so many bytes, which is not the first one.
    pub(crate) fn by_a_response(proxy: &Proxy, bytes: usize) -> Self {
        let mut client = proxy.served(bytes);
        let trace = proxy.trace();
        let received = proxy.exchange(&mut client, bytes);
        proxy.exchange(&mut client, bytes);
        // What is noted in front of the second request is all of the first response.
        let mut calls = Vec::new();
        let mut starts = Vec::new();
        wait_until("both requests are noted", || {
            calls = trace.calls();
            starts = (0..calls.len()).filter(|at| calls[*at].receives_a_request()).collect();
            starts.len() == 2
        });
        Self { received, ..Self::by(&calls[starts[0]..starts[1]]) }
    }

    fn by(calls: &[Call]) -> Self {
        let mut moved = Self::default();
        // The first call of splice moves into the pipe: it is the one whose input is the origin's connection.
        let mut is_into = true;
        for call in calls {
            let Some(bytes) = call.detail.rsplit(" = ").next().and_then(|bytes| bytes.parse::<usize>().ok())
            else {
                continue;
            };
            match call.name.as_str() {
                "read" | "pread64" => moved.read += bytes,
                "sendto" | "sendmsg" => moved.sent += bytes,
                "sendfile" => moved.from_files += bytes,
                "splice" if is_into => {
                    moved.into_pipe += bytes;
                    is_into = false;
                }
                "splice" => {
                    moved.out_of_pipe += bytes;
                    is_into = moved.into_pipe == moved.out_of_pipe;
                }
                _ => {}
            }
        }
        moved
    }
}
