//! Converted configurations of nginx, as `baton check` reads them.

use std::path::Path;

use baton_config::{Config, RawConfig};
use baton_nginx::{Weight, convert};

use super::nginx::Itself;

/// Any bytes as a configuration of nginx: what was taken over as a whole is a configuration of Baton.
pub fn readable(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(converted) = convert("t", &text, &mut Itself(&text)) else { return };
    if converted.notes.iter().any(|note| note.weight > Weight::Remark) {
        return;
    }
    let mistakes = mistakes(&converted.toml);
    assert!(mistakes.is_empty(), "{}\n{text}\n{}", mistakes.join("\n"), converted.toml);
}

/// What is wrong with a configuration, but for files and users that this machine lacks.
pub fn mistakes(toml: &str) -> Vec<String> {
    let checked = RawConfig::parse("baton.toml".into(), toml.to_owned(), Path::new("/"));
    let Err(refused) = checked.and_then(|raw| Config::check(&raw)) else { return Vec::new() };
    let told = refused.without_excerpts();
    let complaints = told.split("error: ").filter(|complaint| !complaint.is_empty());
    let is_of_machine = |complaint: &str| {
        ["(os error ", "there is no user", "there is no group"].iter().any(|one| complaint.contains(one))
    };
    complaints.filter(|complaint| !is_of_machine(complaint)).map(str::to_owned).collect()
}
