//! The order of a load without sessions: connections take requests from one list in turn, over and over.

use std::collections::HashMap;

use super::targets::LoadRequest;

/// Numbers of requests, over and over.
#[derive(Debug)]
pub(super) struct RequestOrder {
    numbers: Vec<u32>,
    next: usize,
}

impl RequestOrder {
    /// The order of these requests, and the different ones among them, by their numbers.
    pub(super) fn of(requests: impl IntoIterator<Item = LoadRequest>) -> (Self, Vec<LoadRequest>) {
        let mut different = Vec::new();
        let mut known = HashMap::new();
        let number = |request: LoadRequest| {
            *known.entry(request).or_insert_with_key(|request| {
                different.push(request.clone());
                different.len() as u32 - 1
            })
        };
        let numbers = requests.into_iter().map(number).collect();
        (Self { numbers, next: 0 }, different)
    }

    /// The next request's number.
    pub(super) fn take_next(&mut self) -> usize {
        let request = self.numbers[self.next];
        self.next = (self.next + 1) % self.numbers.len();
        request as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_kept_and_begins_again() {
        let paths = ["/a", "/b", "/a"].map(|path| LoadRequest::page(path, None));
        let (mut order, different) = RequestOrder::of(paths);
        let next: Vec<_> = (0..5).map(|_| different[order.take_next()].path.as_str()).collect();
        assert_eq!(next, ["/a", "/b", "/a", "/a", "/b"]);
        assert_eq!(different.len(), 2);
    }

    #[test]
    fn what_is_posted_tells_requests_of_one_path_apart() {
        let fields = "X: y\r\n".to_owned();
        let post = |body: &str| LoadRequest {
            fields: fields.clone(),
            ..LoadRequest::page("/a", None).posting(body.into())
        };
        let (_, different) = RequestOrder::of([post("one"), post("other"), post("one")]);
        assert_eq!(different.len(), 2);
        let text = String::from_utf8(different[0].wire("127.0.0.1", false)).unwrap();
        assert!(text.starts_with("POST /a HTTP/1.1\r\n"), "{text}");
        assert!(text.ends_with("Content-Length: 3\r\nX: y\r\n\r\none"), "{text}");
    }
}
