//! How a listing is to look: its form and its order, as the query of a request says.

use std::cmp::Ordering;

use super::contents::Entry;

/// How a listing is to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Whether the listing is JSON rather than HTML.
    pub as_json: bool,
    pub(super) key: SortKey,
    pub(super) is_descending: bool,
}

/// What entries are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SortKey {
    #[default]
    Name,
    Size,
    Time,
}

impl SortKey {
    pub(super) const ALL: [Self; 3] = [Self::Name, Self::Size, Self::Time];

    /// The value of `sort` in a query.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Size => "size",
            Self::Time => "time",
        }
    }
}

impl View {
    /// The view for a request: `sort=name`, `size` or `time`, `order=asc` or `desc`, `format=json`. Anything else in the
    /// query says nothing. `prefers_json`: whether the client would take JSON rather than HTML.
    pub fn of_request(query: Option<&[u8]>, prefers_json: bool) -> Self {
        let mut view = Self { as_json: prefers_json, ..Self::default() };
        for pair in query.unwrap_or_default().split(|byte| *byte == b'&') {
            match pair {
                b"format=json" => view.as_json = true,
                b"order=asc" => view.is_descending = false,
                b"order=desc" => view.is_descending = true,
                _ => {
                    let word = pair.strip_prefix(b"sort=");
                    let key = SortKey::ALL.into_iter().find(|key| word == Some(key.word().as_bytes()));
                    view.key = key.unwrap_or(view.key);
                }
            }
        }
        view
    }

    /// Directories come first in either order. Those of the same size or time are in the order of their names.
    pub(super) fn compare(self, a: &Entry, b: &Entry) -> Ordering {
        let by_key = match self.key {
            SortKey::Name => a.name.cmp(&b.name),
            // That of a directory says nothing of its contents.
            SortKey::Size if a.is_directory => Ordering::Equal,
            SortKey::Size => a.size.cmp(&b.size),
            SortKey::Time => a.modified_unix_seconds.cmp(&b.modified_unix_seconds),
        };
        let by_key = if self.is_descending { by_key.reverse() } else { by_key };
        b.is_directory.cmp(&a.is_directory).then(by_key).then_with(|| a.name.cmp(&b.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_says_form_and_order() {
        let view = |query: &str| View::of_request(Some(query.as_bytes()), false);
        let (by_size, by_time) = (SortKey::Size, SortKey::Time);
        assert_eq!(view("sort=size"), View { key: by_size, ..View::default() });
        assert_eq!(
            view("a&sort=time&order=desc"),
            View { key: by_time, is_descending: true, as_json: false }
        );
        assert_eq!(view("format=json&sort=name&order=asc"), View { as_json: true, ..View::default() });
        for query in ["", "sort=", "sort=SIZE", "order", "sort=size%20", "xsort=size", "&&=&"] {
            assert_eq!(view(query), View::default(), "{query}");
        }
        assert!(View::of_request(None, true).as_json);
    }
}
