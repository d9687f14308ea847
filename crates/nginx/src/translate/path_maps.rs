//! `map` of paths to others, with an `if` that redirects: a route for each path.

use super::route::{By, Route, encoded, redirection};
use super::translator::Translator;
use crate::redirect;
use crate::tree::Directive;
use crate::values::is_constant;

impl Translator<'_> {
    /// The routes of a condition on a `map`; `None`: it is about something else.
    pub(super) fn moved_paths(&mut self, condition: &Directive) -> Option<Vec<Route>> {
        let (variable, status) = redirected_value(condition)?;
        let map = *self.of_http.maps.iter().find(|map| map.arguments == ["$uri", variable])?;
        let mut routes = Vec::new();
        for line in &map.block {
            let (path, target) = (line.name.as_str(), line.argument(0));
            let is_target = target.starts_with('/') || target.contains("://");
            match path {
                "default" if target.is_empty() => {}
                _ if path.starts_with('/') && is_target && is_constant(target) => {
                    let keys = redirection(status, target);
                    routes.push(Route { keys, ..Route::new(By::Exact, encoded(path), path.to_owned()) });
                }
                _ => return None,
            }
        }
        self.use_map(variable);
        Some(routes)
    }
}

/// The variable of an `if` that sends clients where it says, and the status.
fn redirected_value(condition: &Directive) -> Option<(&str, u64)> {
    let ([variable] | [variable, "!=", ""]) = redirect::condition(condition)?[..] else { return None };
    let [inner] = condition.block.as_slice() else { return None };
    let status = match inner.arguments.as_slice() {
        [status, target] if inner.name == "return" && target == variable => status.parse().ok()?,
        [target] if inner.name == "return" && target == variable => 302,
        [pattern, target, flag] if inner.name == "rewrite" && pattern == "^" && target == variable => {
            match flag.as_str() {
                "permanent" => 301,
                "redirect" => 302,
                _ => return None,
            }
        }
        _ => return None,
    };
    matches!(status, 301 | 302 | 303 | 307 | 308).then_some((variable, status))
}
