//! What is explained, as text.

/// What is explained, a line each, and the response below.
#[derive(Default)]
pub(super) struct Lines(String);

impl Lines {
    /// Adds a line.
    pub(super) fn add(&mut self, what: &str, text: String) {
        self.0.push_str(&format!("{what:10}{text}\n"));
    }

    /// The whole, with the head of the response, or of the request that an origin would get.
    pub(super) fn finish(mut self, head: &str) -> String {
        self.0.push('\n');
        for line in head.split("\r\n") {
            self.0.push_str(&format!("{line}\n"));
        }
        self.0
    }
}

/// The value of a field of a head.
pub(super) fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let fields = head.split("\r\n").filter_map(|line| line.split_once(':'));
    fields.into_iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}
