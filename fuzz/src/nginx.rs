//! Configurations of nginx.

use baton_nginx::{Includes, convert};

/// A file that is included, and includes itself.
pub struct Itself<'a>(pub &'a str);

impl Includes for Itself<'_> {
    fn read(&mut self, pattern: &str) -> Option<Vec<(String, String)>> {
        match pattern {
            "itself" => Some(vec![("itself".into(), self.0.into())]),
            pattern if pattern.contains('*') => Some(Vec::new()),
            _ => None,
        }
    }

    fn exists(&mut self, path: &str) -> bool {
        path.len().is_multiple_of(2)
    }

    fn folder(&self) -> &'static str {
        "/etc/nginx"
    }
}

/// Any bytes as a configuration: the result is TOML, each note has a place in the text, and is said in the result.
pub fn configuration(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(converted) = convert("t", &text, &mut Itself(&text)) else { return };
    let parsed: Result<toml::Table, _> = converted.toml.parse();
    assert!(parsed.is_ok(), "{parsed:?}: {}", converted.toml);
    let lines = text.split('\n').count();
    for note in &converted.notes {
        assert!((1..=lines).contains(&note.place.line), "{note}");
        assert!(converted.toml.contains(&format!("# {}: ", note.place)), "{note} in {}", converted.toml);
    }
}
