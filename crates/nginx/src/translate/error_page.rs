//! `error_page` directives that Baton's `error_pages` can say.

use crate::tree::Directive;
use crate::values::is_constant;

/// The statuses and the path of an `error_page` that is a file and changes no status.
pub(super) fn page_of(directive: &Directive) -> Option<(Vec<u16>, &str)> {
    let (target, codes) = directive.arguments.split_last()?;
    let is_file = target.starts_with('/') && is_constant(target) && !target.contains('?');
    // One with `=` is no number.
    let codes: Option<Vec<u16>> = codes.iter().map(|code| code.parse().ok()).collect();
    codes.filter(|_| is_file && !target.ends_with(".php")).map(|codes| (codes, target.as_str()))
}
