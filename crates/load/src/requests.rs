//! The order of a load without sessions: connections take requests from one list in turn, over and over.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::targets::{LoadRequest, Targets};

/// Prepared requests, and the order in which the connections take them in turn.
#[derive(Clone, Debug)]
pub struct RequestList {
    targets: Targets,
    order: RequestOrder,
}

/// Numbers of requests, over and over.
#[derive(Clone, Debug)]
pub(super) struct RequestOrder {
    numbers: Vec<u32>,
    next: usize,
}

impl RequestOrder {
    /// The next request's number.
    pub(super) fn take_next(&mut self) -> usize {
        let request = self.numbers[self.next];
        self.next = (self.next + 1) % self.numbers.len();
        request as usize
    }
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
        let mut different: Vec<LoadRequest> = Vec::new();
        let mut known = HashMap::new();
        let number = |request: LoadRequest| {
            *known.entry((request.path.clone(), request.body.clone())).or_insert_with(|| {
                different.push(request);
                different.len() as u32 - 1
            })
        };
        let numbers: Vec<u32> = requests.into_iter().map(number).collect();
        assert!(!numbers.is_empty(), "a load needs a request");
        let targets = Targets::new(&address.to_string(), connection_per_request, different);
        Self { targets, order: RequestOrder { numbers, next: 0 } }
    }

    /// These requests with more fields, each with its line's end.
    #[must_use]
    pub fn with_fields(mut self, fields: &str) -> Self {
        self.targets.add_fields(fields);
        self
    }

    /// These requests by this method, with this body. More fields come before.
    #[must_use]
    pub fn with_body(mut self, method: &str, body: &[u8]) -> Self {
        self.targets.add_body(method, body);
        self
    }

    /// Passes over so many requests.
    pub fn skip(&mut self, count: usize) {
        self.order.next = (self.order.next + count) % self.order.numbers.len();
    }

    /// The bytes of the first request.
    pub(super) fn first(&self) -> &[u8] {
        self.targets.bytes(self.order.numbers[0] as usize)
    }

    /// The requests and their order.
    pub(super) fn into_parts(self) -> (Targets, RequestOrder) {
        (self.targets, self.order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(paths: &[&str]) -> RequestList {
        let requests = paths.iter().map(|path| LoadRequest::page(*path, None));
        RequestList::new(SocketAddr::from(([127, 0, 0, 1], 80)), false, requests)
    }

    fn next(list: &mut RequestList, count: usize) -> Vec<String> {
        let path = |_| {
            let next = list.order.take_next();
            list.targets.path(next).to_owned()
        };
        (0..count).map(path).collect()
    }

    #[test]
    fn the_order_is_kept_and_begins_again() {
        let mut list = list(&["/a", "/b", "/a"]);
        assert_eq!(next(&mut list, 5), ["/a", "/b", "/a", "/a", "/b"]);
        assert_eq!(list.targets.count(), 2);
    }

    #[test]
    fn what_is_posted_tells_requests_of_one_path_apart() {
        let post = |body: &str| LoadRequest::page("/a", None).posting(body.into());
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        let list = RequestList::new(address, false, [post("one"), post("other"), post("one")]);
        let list = list.with_fields("X: y\r\n");
        assert_eq!(list.targets.count(), 2);
        let text = String::from_utf8(list.first().to_vec()).unwrap();
        assert!(text.starts_with("POST /a HTTP/1.1\r\n"), "{text}");
        assert!(text.ends_with("Content-Length: 3\r\nX: y\r\n\r\none"), "{text}");
    }
}
