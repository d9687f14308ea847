//! The requests of a load: prepared once, sent repeatedly in a fixed order.

use std::net::SocketAddr;

use crate::files;

/// One request and what its reply must look like.
#[derive(Clone, Debug)]
pub struct LoadRequest {
    /// Path and query, beginning with '/'.
    pub path: String,
    /// The length that the body must have, if known. Otherwise the first reply sets it.
    pub bytes: Option<u64>,
    /// Whether the body is the text of [a file that the lab has written](crate::files).
    pub is_file: bool,
}

impl LoadRequest {
    /// For a file that the lab has written. The first body of each load is compared with it.
    #[must_use]
    pub fn file(path: impl Into<String>, bytes: u64) -> Self {
        Self { path: path.into(), bytes: Some(bytes), is_file: true }
    }

    /// For what a program makes, of this length if it is known.
    #[must_use]
    pub fn page(path: impl Into<String>, bytes: Option<u64>) -> Self {
        Self { path: path.into(), bytes, is_file: false }
    }
}

#[derive(Clone, Debug)]
struct Prepared {
    request: LoadRequest,
    wire: Vec<u8>,
    sum: Option<u64>,
    /// It is a file, with which no body has been compared.
    uncompared: bool,
}

/// Prepared requests, and the order in which the connections take them in turn.
#[derive(Clone, Debug)]
pub struct RequestList {
    prepared: Vec<Prepared>,
    order: Vec<usize>,
    next: usize,
}

impl RequestList {
    /// Requests to `address` in this order, over and over.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn new(
        address: SocketAddr,
        connection_per_request: bool,
        requests: impl IntoIterator<Item = LoadRequest>,
    ) -> Self {
        let mut prepared: Vec<Prepared> = Vec::new();
        let mut known = std::collections::HashMap::new();
        let connection = if connection_per_request { "Connection: close\r\n" } else { "" };
        let order: Vec<usize> = requests
            .into_iter()
            .map(|request| {
                *known.entry(request.path.clone()).or_insert_with(|| {
                    let wire = format!(
                        "GET {} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: baton-lab\r\n{connection}\r\n",
                        request.path
                    );
                    let uncompared = request.is_file;
                    prepared.push(Prepared { request, wire: wire.into_bytes(), sum: None, uncompared });
                    prepared.len() - 1
                })
            })
            .collect();
        assert!(!order.is_empty(), "a load needs a request");
        Self { prepared, order, next: 0 }
    }

    /// These requests with more fields, each with its line's end.
    #[must_use]
    pub fn with_fields(mut self, fields: &str) -> Self {
        for prepared in &mut self.prepared {
            let end = prepared.wire.len() - "\r\n".len();
            prepared.wire.splice(end..end, fields.bytes());
        }
        self
    }

    /// The next request's number.
    pub(super) fn take_next(&mut self) -> usize {
        let request = self.order[self.next];
        self.next = (self.next + 1) % self.order.len();
        request
    }

    /// Passes over so many requests.
    pub fn skip(&mut self, count: usize) {
        self.next = (self.next + count) % self.order.len();
    }

    /// The request that [`take_next`](Self::take_next) gives at the beginning.
    pub(super) fn first(&self) -> usize {
        self.order[0]
    }

    /// The bytes to send.
    pub(super) fn bytes(&self, request: usize) -> &[u8] {
        &self.prepared[request].wire
    }

    pub(super) fn path(&self, request: usize) -> &str {
        &self.prepared[request].request.path
    }

    /// Whether a body of this length is right.
    pub(super) fn length_is(&mut self, request: usize, bytes: u64) -> bool {
        *self.prepared[request].request.bytes.get_or_insert(bytes) == bytes
    }

    /// Whether the next body is to be compared with its file. The one after it is not.
    pub(super) fn take_uncompared(&mut self, request: usize) -> bool {
        std::mem::take(&mut self.prepared[request].uncompared)
    }

    /// Whether a file has these bytes at `offset`.
    pub(super) fn file_has(&self, request: usize, offset: u64, piece: &[u8]) -> bool {
        let LoadRequest { path, bytes, .. } = &self.prepared[request].request;
        bytes.is_none_or(|bytes| files::has(path, bytes, offset, piece))
    }

    /// Whether a body with this sum is the same as before.
    pub(super) fn sum_is(&mut self, request: usize, sum: u64) -> bool {
        *self.prepared[request].sum.get_or_insert(sum) == sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(paths: &[&str], close: bool) -> RequestList {
        let requests = paths.iter().map(|path| LoadRequest::page(*path, None));
        RequestList::new(SocketAddr::from(([127, 0, 0, 1], 80)), close, requests)
    }

    #[test]
    fn the_order_is_kept_and_begins_again() {
        let mut list = list(&["/a", "/b", "/a"], false);
        let order: Vec<String> = (0..5)
            .map(|_| {
                let next = list.take_next();
                list.path(next).to_owned()
            })
            .collect();
        assert_eq!(order, ["/a", "/b", "/a", "/a", "/b"]);
        assert_eq!(list.prepared.len(), 2);
    }

    #[test]
    fn a_connection_per_request_is_announced() {
        let text = |close| String::from_utf8(list(&["/x?y"], close).bytes(0).to_vec()).unwrap();
        assert!(text(false).starts_with("GET /x?y HTTP/1.1\r\nHost: 127.0.0.1:80\r\n"));
        assert!(!text(false).contains("Connection"));
        assert!(text(true).contains("\r\nConnection: close\r\n"));
        assert!(text(true).ends_with("\r\n\r\n"));
    }

    #[test]
    fn more_fields_are_the_last() {
        let list = list(&["/a"], false).with_fields("X-A: 1\r\n");
        assert!(list.bytes(0).ends_with(b"\r\nUser-Agent: baton-lab\r\nX-A: 1\r\n\r\n"));
    }

    #[test]
    fn the_first_reply_sets_what_was_not_known() {
        let mut list = list(&["/a"], false);
        assert!(list.length_is(0, 7) && list.length_is(0, 7) && !list.length_is(0, 8));
        assert!(list.sum_is(0, 1) && !list.sum_is(0, 2));
    }
}
