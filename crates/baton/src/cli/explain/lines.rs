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
