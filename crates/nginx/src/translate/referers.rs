//! `valid_referers`: which pages may lead here, as a condition on `Referer`.

use super::expression::quoted;
use super::request_part::Values;
use super::scope::Scope;

/// The values of `Referer` for which `$invalid_referer` is set; `None`: one of the words has no counterpart.
pub(super) fn invalid_referers(scope: &Scope<'_>) -> Option<Values> {
    let valid = scope.find("valid_referers")?;
    let (mut any, mut none, mut holds_without) = ("~.", Vec::new(), true);
    for word in &valid.arguments {
        match word.as_str() {
            "none" => holds_without = false,
            // Proxies take the scheme away.
            "blocked" => any = "~(?i)^https?://",
            "server_names" => {
                let names = scope.find("server_name")?.arguments.iter();
                none.extend(names.map(|name| page_of(name)).collect::<Option<Vec<_>>>()?);
            }
            word => none.push(page_of(word)?),
        }
    }
    Some(Values { any: vec![any.into()], none, holds_without })
}

/// An expression for pages of a host, such as `*.example.org/pictures`.
fn page_of(word: &str) -> Option<String> {
    if let Some(expression) = word.strip_prefix('~') {
        let behind =
            expression.strip_prefix('^').map_or_else(|| format!(".*(?:{expression})"), str::to_owned);
        return Some(format!("~(?i)^https?://{behind}"));
    }
    let (host, path) = word.split_at(word.find('/').unwrap_or(word.len()));
    let host = match (host.strip_prefix("*."), host.strip_suffix(".*")) {
        (Some(end), None) => format!("[^/]+\\.{}", quoted(end)),
        (None, Some(start)) => format!("{}\\.[^/:]+", quoted(start)),
        _ => quoted(host),
    };
    let end =
        if path.is_empty() { "(?:[:/?#]|$)".to_owned() } else { format!("(?::[0-9]+)?{}", quoted(path)) };
    let is_known = !word.starts_with('.') && !word.contains(['$', '_']) && !host.contains("\\*");
    is_known.then(|| format!("~(?i)^https?://{host}{end}"))
}
