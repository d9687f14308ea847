//! Guards of index files: nginx asks its locations for the index of a folder, Baton those of the folder alone.

use baton_pattern::Pattern;

use super::route::{By, Route};

/// What guards the names of a folder's index guards the folder, too. `Some(None)`: that cannot be said, as where the
/// expression is about names in all folders.
pub(super) fn guard_of_folders(route: &Route, index: &[String]) -> Option<Option<Route>> {
    let By::Expression(level) = &route.by else { return None };
    let mut index = index.iter().filter(|_| route.refuses_some());
    let start = index.find_map(|name| before_ending(&route.value, name.rsplit_once('.')?.1))?;
    let folder = start.strip_suffix(".*").or_else(|| start.strip_suffix(".+"));
    let folder = folder.filter(|folder| folder.contains('/'));
    let value = folder
        .map(|folder| format!("{folder}{}$", if folder.ends_with('/') { "(?:.*/)?" } else { ".*/" }))
        .filter(|value| Pattern::regex(value).is_ok());
    Some(value.map(|value| Route::expression(level.clone(), value, route.keys.clone())))
}

/// Whether an expression is about names that end as this one does.
pub(super) fn is_about_file(pattern: &str, name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| before_ending(pattern, ending).is_some())
}

/// The part of an expression in front of an ending: `^/a/.*` of `^/a/.*\.(php|cgi)$`, and of `^/a/.*(?i:\.php$)`, as one within a
/// location is written.
fn before_ending(pattern: &str, ending: &str) -> Option<String> {
    let folded = pattern.strip_suffix(')').and_then(|pattern| pattern.rsplit_once("(?i:"));
    match folded.filter(|(_, inner)| inner.ends_with('$')) {
        Some((outer, inner)) => plain_before_ending(inner, ending).map(|start| format!("{outer}{start}")),
        None => plain_before_ending(pattern, ending).map(str::to_owned),
    }
}

fn plain_before_ending<'r>(pattern: &'r str, ending: &str) -> Option<&'r str> {
    let pattern = pattern.strip_suffix('$').or_else(|| pattern.strip_suffix("(/|$)")).unwrap_or(pattern);
    match pattern.strip_suffix(')') {
        Some(group) => {
            let (start, names) = group.rsplit_once("\\.(")?;
            names.trim_start_matches("?:").split('|').any(|name| name == ending).then_some(start)
        }
        None => pattern.strip_suffix(ending)?.strip_suffix("\\."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_about_endings() {
        for (pattern, expected) in [
            (r"^/a/.*\.html$", Some("^/a/.*")),
            (r"^/a/.*\.(css|html)$", Some("^/a/.*")),
            (r"^/a.*(?i:\.html$)", Some("^/a.*")),
            (r"^/a/.*(?i:\.(css|html)$)", Some("^/a/.*")),
            (r"^/a/.*(?i:x.*\.html$)", Some("^/a/.*x.*")),
            (r"^/a/.*(?i:\.css$)", None),
            (r"^/a/(?i:b)", None),
        ] {
            assert_eq!(before_ending(pattern, "html").as_deref(), expected, "{pattern}");
        }
    }
}
